import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where it keeps its data: in its own files, in PostgreSQL, or in its own server. */
type Keeps = "files" | "postgres" | "restate";

export type Contender = {
  name: string;
  /** What the bars compare: Everstep, what people use today, and what the disk allows. */
  role: "everstep" | "peer" | "floor";
  /** The module that runs its steps, and the one that runs its agents; null if it has none. */
  program: string | null;
  agents: string | null;
  variant: string;
  keeps: Keeps;
};

const here = (file: string): string => new URL(file, import.meta.url).href;

type Entry = Omit<Contender, "role" | "program" | "agents"> & { program?: string; agents?: string };

const withRole = (role: Contender["role"], entries: Entry[]): Contender[] =>
  entries.map(({ program, agents, ...one }) => ({
    ...one,
    role,
    program: program === undefined ? null : here(program),
    agents: agents === undefined ? null : here(agents),
  }));

const EVERSTEP = withRole("everstep", [
  {
    name: "Everstep, embedded",
    program: "everstep.ts",
    agents: "agent/everstep.ts",
    variant: "embedded",
    keeps: "files",
  },
  {
    name: "Everstep, PostgreSQL",
    program: "everstep.ts",
    agents: "agent/everstep.ts",
    variant: "postgres",
    keeps: "postgres",
  },
]);

const LANGGRAPH = { program: "libraries/langgraph.ts", agents: "libraries/agents/langgraph.ts" };

const PEERS = withRole("peer", [
  { name: "LangGraph.js, SQLite", ...LANGGRAPH, variant: "sqlite", keeps: "files" },
  { name: "LangGraph.js, PostgreSQL", ...LANGGRAPH, variant: "postgres", keeps: "postgres" },
  {
    name: "DBOS Transact",
    program: "libraries/dbos.ts",
    agents: "libraries/agents/dbos.ts",
    variant: "",
    keeps: "postgres",
  },
  {
    name: "Restate",
    program: "libraries/restate.ts",
    agents: "libraries/agents/restate.ts",
    variant: "",
    keeps: "restate",
  },
  { name: "eve", agents: "libraries/agents/eve.ts", variant: "", keeps: "files" },
  { name: "AI SDK WorkflowAgent", agents: "libraries/agents/workflow.ts", variant: "", keeps: "files" },
]);

const FLOORS = withRole("floor", [
  { name: "bare SQLite, one by one", program: "sqlite-floor.ts", variant: "single", keeps: "files" },
  { name: "bare SQLite, grouped", program: "sqlite-floor.ts", variant: "grouped", keeps: "files" },
  { name: "bare PostgreSQL, one by one", program: "postgres-floor.ts", variant: "single", keeps: "postgres" },
  { name: "bare PostgreSQL, grouped", program: "postgres-floor.ts", variant: "grouped", keeps: "postgres" },
]);

const INSTALLED = fileURLToPath(new URL("node_modules", import.meta.url));

/** All that can be measured here, in order. Floors are optional: they have no control and no recovery. */
export function contenders(floors: "with floors" | "without floors"): Contender[] {
  const all = [...EVERSTEP, ...PEERS, ...(floors === "with floors" ? FLOORS : [])];
  return chosen(all.filter(({ program }) => program !== null));
}

/** All contenders that run agents. */
export function agentContenders(): Contender[] {
  return chosen([...EVERSTEP, ...PEERS].filter(({ agents }) => agents !== null));
}

/** `BENCH_CONTENDERS` selects contenders by parts of their names, separated by semicolons. */
function chosen(all: Contender[]): Contender[] {
  if (!existsSync(INSTALLED))
    throw new Error("the peers are not installed; npm ci --prefix bench/peers brings them along");
  const parts = process.env["BENCH_CONTENDERS"]?.split(";") ?? [""];
  return all.filter(({ name }) => parts.some((part) => name.includes(part)));
}
