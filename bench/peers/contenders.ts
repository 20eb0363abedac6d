import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where it keeps its data: in files of its own, in PostgreSQL, or in a server of its own. */
type Keeps = "files" | "postgres" | "restate";

export type Contender = {
  name: string;
  /** What the bars compare: Everstep, what people use today, and what the disk allows. */
  role: "everstep" | "peer" | "floor";
  program: string;
  variant: string;
  keeps: Keeps;
};

const here = (file: string): string => new URL(file, import.meta.url).href;

const EVERSTEP: Contender[] = [
  { name: "Everstep, embedded", variant: "embedded", keeps: "files" },
  { name: "Everstep, PostgreSQL", variant: "postgres", keeps: "postgres" },
].map((one) => ({ ...one, keeps: one.keeps as Keeps, role: "everstep", program: here("everstep.ts") }));

const PEERS: Contender[] = [
  { name: "LangGraph.js, SQLite", program: here("libraries/langgraph.ts"), variant: "sqlite", keeps: "files" },
  { name: "LangGraph.js, PostgreSQL", program: here("libraries/langgraph.ts"), variant: "postgres", keeps: "postgres" },
  { name: "DBOS Transact", program: here("libraries/dbos.ts"), variant: "", keeps: "postgres" },
  { name: "Restate", program: here("libraries/restate.ts"), variant: "", keeps: "restate" },
].map((one) => ({ ...one, keeps: one.keeps as Keeps, role: "peer" }));

const FLOORS: Contender[] = [
  { name: "bare SQLite, one by one", program: here("sqlite-floor.ts"), variant: "single", keeps: "files" },
  { name: "bare SQLite, grouped", program: here("sqlite-floor.ts"), variant: "grouped", keeps: "files" },
  { name: "bare PostgreSQL, one by one", program: here("postgres-floor.ts"), variant: "single", keeps: "postgres" },
  { name: "bare PostgreSQL, grouped", program: here("postgres-floor.ts"), variant: "grouped", keeps: "postgres" },
].map((one) => ({ ...one, keeps: one.keeps as Keeps, role: "floor" }));

const INSTALLED = fileURLToPath(new URL("node_modules", import.meta.url));

/** All that can be measured here, in turn. Floors only where they say something: they have no control and no recovery. */
export function contenders(floors: "with floors" | "without floors"): Contender[] {
  if (!existsSync(INSTALLED))
    throw new Error("the peers are not installed; npm ci --prefix bench/peers brings them along");
  return [...EVERSTEP, ...PEERS, ...(floors === "with floors" ? FLOORS : [])];
}
