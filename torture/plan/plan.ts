import type { Cut } from "../../test/cluster/faulty-proxy.ts";
import { type Random, randomFrom } from "../../test/store/random.ts";
import { faultsOf } from "./faults.ts";
import { Operations } from "./operations.ts";

export type StoreKind = "lancedb" | "postgres";
export type Timed<What> = { at_ms: number; what: What };

export type Creation = {
  agent_id: string;
  moniker: "count" | "echo" | "joke" | "script";
  session_id: string;
  conversation_id?: string;
  params: Record<string, unknown>;
  options: Record<string, unknown>;
};

export type Operation =
  /** `again`: asked once more after the answer, which must then be the same. `followed`: over a socket from its birth on. */
  | { kind: "create"; body: Creation; again: boolean; followed: boolean }
  | { kind: "fork"; session_id: string; iteration: number; fork_id: string; word: string | null; again: boolean }
  | { kind: "say"; conversation_id: string; message_id: string; text: string; mode: "next" | "now"; again: boolean }
  | { kind: "control"; verb: "pause" | "resume" | "destroy"; session_id: string }
  | { kind: "interrupt"; session_id: string; word: string; mode: "next" | "now" }
  | { kind: "rename"; conversation_id: string; title: string }
  | { kind: "read"; path: string }
  /** One of the sockets loses its connection. */
  | { kind: "cut"; follower: number };

export type Fault =
  | { kind: "kill" | "terminate"; member: number }
  | { kind: "freeze"; member: number; for_ms: number }
  | { kind: "fill_disk"; free_bytes: number; for_ms: number }
  | DatabaseFault;

export type DatabaseFault =
  | { kind: "restart_database"; for_ms: number }
  /** The server ends about so many of the connections, 1 being all. */
  | { kind: "end_connections"; share: number; for_ms: 0 }
  | { kind: "cancel_statements"; for_ms: number }
  | { kind: "network"; how: "hold" | "delay" | "refuse"; delay_ms: number; for_ms: number }
  /** Connections break in the middle of what they say. */
  | { kind: "cut_connections"; cuts: Cut[]; for_ms: number }
  /** Somebody else's transaction. */
  | { kind: "hold_locks"; statement: string; for_ms: number }
  | { kind: "take_connections"; for_ms: number }
  /** Statements may take two seconds, and a table is locked for longer. */
  | { kind: "limit_statements"; for_ms: number };

/** All that is asked and all that goes wrong, decided by the seed before anything runs. */
export type Plan = {
  seed: number;
  minutes: number;
  store: StoreKind;
  conversations: string[];
  /** Two agents for each conversation, there before anything goes wrong. */
  agents: Creation[];
  /** What each client does, in order; one that is late goes on at once. */
  clients: Timed<Operation>[][];
  faults: Timed<Fault>[];
};

const CLIENTS = 6;
const CONVERSATIONS = 4;
/** Milliseconds from one operation to the next, all clients together. */
const GAP_MS = 25;

export function makePlan(seed: number, minutes: number, store: StoreKind): Plan {
  const random = randomFrom(seed);
  const conversations = Array.from({ length: CONVERSATIONS }, (_, n) => `conversation ${n}`);
  const agents = conversations.flatMap((conversation_id) => [1, 2].map((n) => agentOf(conversation_id, n)));
  const duration = minutes * 60_000;
  const faults = faultsOf(randomFrom(random.below(2 ** 31)), duration, store);
  const clients = clientsOf(random, new Operations(random, conversations, agents), duration);
  return { seed, minutes, store, conversations, agents, clients, faults };
}

const agentOf = (conversation_id: string, n: number): Creation => ({
  agent_id: `echo ${n}`,
  moniker: "echo",
  session_id: `echo ${n} of ${conversation_id}`,
  conversation_id,
  params: {},
  options: {},
});

function clientsOf(random: Random, operations: Operations, duration: number): Timed<Operation>[][] {
  const clients = Array.from({ length: CLIENTS }, (): Timed<Operation>[] => []);
  for (let at_ms = 0; at_ms < duration; at_ms += random.below(2 * GAP_MS)) {
    const what = operations.next();
    // One client renames, so that it is known which name was the last.
    const client = what.kind === "rename" ? 0 : random.below(CLIENTS);
    clients[client]?.push({ at_ms, what });
  }
  return clients;
}
