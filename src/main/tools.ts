import { ActionQueue } from "../actions/action-queue.ts";
import { prepareFrameActions } from "../actions/frame-actions.ts";
import type { GuidanceLimit } from "../actions/guidance-limit.ts";
import type { Catalog } from "../monikers/catalog.ts";
import type { Store } from "../store/store.ts";
import { builtInServers } from "../tools/builtin/built-in-servers.ts";
import { ToolRegistry } from "../tools/tool-registry.ts";
import type { ToolServer } from "../tools/tool-server.ts";

export type ToolParts = { store: Store; catalog: Catalog; limit: GuidanceLimit; workspace: string };

/** The tools that are always there. */
export const newToolRegistry = ({ workspace, ...parts }: ToolParts): ToolRegistry =>
  new ToolRegistry({ workspace, servers: ownServers(parts) });

function ownServers({ store, catalog, limit }: Omit<ToolParts, "workspace">): ToolServer[] {
  // Only to check what a frame would ask for: it writes nothing.
  const queue = new ActionQueue(store, catalog, { limit });
  return builtInServers({
    store,
    monikers: () => catalog.values(),
    async checkActions(actions, sender) {
      const rows = await prepareFrameActions(queue, actions, sender);
      rows.written();
    },
  });
}
