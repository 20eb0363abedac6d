import type { AgentWork } from "./agent/agent-peer.ts";
import type { ControlRound } from "./control-round.ts";
import type { Place, Task } from "./peer.ts";

/** The single argument of a peer's process. */
export type PeerStart = {
  /** The module that opens the peer. */
  program: string;
  variant: string;
  place: Place;
  /** The file that records every step as it happens, for benches that kill; otherwise null. */
  trace: string | null;
  /** The number of this process among those on the same data, from 1. */
  life: number;
  /** What agents need, if agents are measured. */
  work?: AgentWork;
};

type Work = { session_ids: string[]; task: Task };

/** The bench sends orders; the process replies to them one after another. */
export type Order = StepOrder | AgentOrder;

export type StepOrder =
  | ({ kind: "run" } & Work)
  | ({ kind: "start" } & Work)
  | ({ kind: "recover" } & Work)
  | { kind: "control"; session_ids: string[] }
  | { kind: "close" };

export type AgentOrder =
  | { kind: "ask"; session_id: string; streamed: boolean }
  /** Starts several agents at once without waiting for them; `finish` waits. */
  | { kind: "begin"; session_ids: string[] }
  | { kind: "finish" }
  | { kind: "close" };

export type Reply =
  | { kind: "ready" }
  | { kind: "ran"; ms: number; gaps: number[]; steps: number }
  /** `at` is a time of a clock that all processes share. */
  | { kind: "running"; at: number }
  | { kind: "controlled"; round: ControlRound }
  /** Times of `sharedNow`. */
  | { kind: "answered"; asked: number; first_text: number | null; answered: number }
  | { kind: "begun" }
  | { kind: "finished"; questions: number }
  | { kind: "closed" }
  | { kind: "failed"; message: string };
