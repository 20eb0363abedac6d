import type { Cut } from "../../test/cluster/faulty-proxy.ts";
import { type Random, randomFrom } from "../../test/store/random.ts";
import { faultsOf } from "./faults.ts";
import { Operations } from "./operations.ts";

export type StoreKind = "lancedb" | "postgres";
export type Timed<What> = { at_ms: number; what: What };

export type Creation = {
  agent_id: string;
  moniker: "count" | "echo" | "joke" | "script" | "agent" | "payments" | "timers" | "family" | "schedule" | "distant";
  session_id: string;
  conversation_id?: string;
  params: Record<string, unknown>;
  options: Record<string, unknown>;
};

export type Operation =
  /**
   * `again`: sent once more after the response; the second response must be equal. `followed`: over a socket from its
   * creation.
   */
  | { kind: "create"; body: Creation; again: boolean; followed: boolean }
  | { kind: "fork"; session_id: string; iteration: number; fork_id: string; word: string | null; again: boolean }
  | { kind: "say"; conversation_id: string; message_id: string; text: string; mode: "next" | "now"; again: boolean }
  | { kind: "control"; verb: "pause" | "resume" | "destroy"; session_id: string }
  | { kind: "interrupt"; session_id: string; word: string; mode: "next" | "now" }
  /** Answers the session's current question, if any, with the choice that the number selects. */
  | { kind: "answer"; session_id: string; choice: number }
  | { kind: "rename"; conversation_id: string; title: string }
  | { kind: "read"; path: string }
  /** One of the sockets loses its connection. */
  | { kind: "cut"; follower: number };

export type Fault =
  | { kind: "kill" | "terminate"; member: number }
  /** The monikers' code changes, and a process is told to reload it. */
  | { kind: "reload"; member: number }
  | { kind: "freeze"; member: number; for_ms: number }
  | { kind: "fill_disk"; free_bytes: number; for_ms: number }
  | DatabaseFault;

export type DatabaseFault =
  | { kind: "restart_database"; for_ms: number }
  /** The server ends this share of the connections; 1 is all. */
  | { kind: "end_connections"; share: number; for_ms: 0 }
  | { kind: "cancel_statements"; for_ms: number }
  | { kind: "network"; how: "hold" | "delay" | "refuse"; delay_ms: number; for_ms: number }
  /** Connections break in the middle of a message. */
  | { kind: "cut_connections"; cuts: Cut[]; for_ms: number }
  /** A transaction of another client. */
  | { kind: "hold_locks"; statement: string; for_ms: number }
  | { kind: "take_connections"; for_ms: number }
  /** Statements may take two seconds, and a table is locked for longer than that. */
  | { kind: "limit_statements"; for_ms: number };

/** All requests and all faults, derived from the seed before anything runs. */
export type Plan = {
  seed: number;
  minutes: number;
  store: StoreKind;
  conversations: string[];
  /** Two agents for each conversation, and schedules, created before the first fault. */
  agents: Creation[];
  /** The operations of each client, in order; a client that is late does not wait. */
  clients: Timed<Operation>[][];
  faults: Timed<Fault>[];
};

const CLIENTS = 6;
const CONVERSATIONS = 4;
/** Milliseconds between operations, over all clients. */
const GAP_MS = 25;

export function makePlan(seed: number, minutes: number, store: StoreKind): Plan {
  const random = randomFrom(seed);
  const conversations = Array.from({ length: CONVERSATIONS }, (_, n) => `conversation ${n}`);
  const listeners = conversations.flatMap((conversation_id) => [1, 2].map((n) => agentOf(conversation_id, n)));
  const agents = [...listeners, ...["skip", "allow"].map(scheduleOf)];
  const duration = minutes * 60_000;
  const faults = faultsOf(randomFrom(random.below(2 ** 31)), duration, store);
  const clients = clientsOf(random, new Operations(random, conversations, listeners), duration);
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

const scheduleOf = (overlap: string): Creation => ({
  agent_id: "schedules",
  moniker: "schedule",
  session_id: `schedule ${overlap}`,
  params: {
    cron: "*/2 * * * * *",
    overlap,
    start: { agent_id: "runs", moniker: "count", params: { to: 3, delay_ms: 300 } },
  },
  options: {},
});

function clientsOf(random: Random, operations: Operations, duration: number): Timed<Operation>[][] {
  const clients = Array.from({ length: CLIENTS }, (): Timed<Operation>[] => []);
  for (let at_ms = 0; at_ms < duration; at_ms += random.below(2 * GAP_MS)) {
    const what = operations.next();
    // Only one client renames, so that the last title is known.
    const client = what.kind === "rename" ? 0 : random.below(CLIENTS);
    clients[client]?.push({ at_ms, what });
  }
  return clients;
}
