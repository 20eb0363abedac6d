import type { Store } from "../../store/store.ts";
import type { ToolServer } from "../tool-server.ts";
import { type AgentsParts, agentsServer } from "./agents.ts";
import { filesServer } from "./files.ts";
import { memoryServer } from "./memory.ts";
import { peopleServer } from "./people.ts";
import { timeServer } from "./time.ts";

export type BuiltInParts = AgentsParts & { store: Pick<Store, "search"> };

export const builtInServers = (parts: BuiltInParts): ToolServer[] => [
  filesServer(),
  agentsServer(parts),
  peopleServer(),
  memoryServer(parts.store),
  timeServer(),
];
