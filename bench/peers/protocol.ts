import type { ControlRound } from "./control-round.ts";
import type { Place, Task } from "./peer.ts";

/** What a peer's process is started with, as its one argument. */
export type PeerStart = {
  /** The module that opens the peer. */
  program: string;
  variant: string;
  place: Place;
  /** The file that notes every step as it happens, where a kill is to be looked into. */
  trace: string | null;
  /** Which process of the same place this is, from 1. */
  life: number;
};

type Work = { session_ids: string[]; task: Task };

/** The bench orders, the process replies to one after the other. */
export type Order =
  | ({ kind: "run" } & Work)
  | ({ kind: "start" } & Work)
  | ({ kind: "recover" } & Work)
  | { kind: "control"; session_ids: string[] }
  | { kind: "close" };

export type Reply =
  | { kind: "ready" }
  | { kind: "ran"; ms: number; gaps: number[]; steps: number }
  /** `at` is of a clock that all processes share. */
  | { kind: "running"; at: number }
  | { kind: "controlled"; round: ControlRound }
  | { kind: "closed" }
  | { kind: "failed"; message: string };
