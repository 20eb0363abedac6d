/** What every step of a session does. The peer stores it, so that a session continues unchanged after a restart. */
export type Task = {
  steps: number;
  /** Milliseconds that a step takes. 0: it returns at once. */
  step_ms: number;
  /** Bytes of new state from each step. */
  piece_bytes: number;
};

/** The work itself, the same for all peers: resolves with the new piece of state. Peers call it where they would call a model. */
export type StepFunction = (session_id: string, index: number, task: Task) => Promise<string>;

/** Where a peer keeps its data. Each uses the parts it needs. */
export type Place = {
  folder: string;
  database_url: string;
  restate: { ingress: string; admin: string; service_port: number };
};

/**
 * A durable runtime as the bench drives it, in a separate process.
 *
 * - Each step's outcome is on disk, as far as the peer promises that, before the session's next step starts.
 * - `run` resolves when each of the sessions has done all its steps.
 * - `recover` is called instead of `run` in the process that follows a killed one; it resolves when the sessions can continue
 *   by themselves.
 */
export interface Peer {
  run(session_ids: readonly string[], task: Task): Promise<void>;
  recover?(session_ids: readonly string[], task: Task): Promise<void>;
  control?: {
    /** Resolves when the peer reports the session as paused; `accepted` is called when it has acknowledged the request. */
    pause(session_id: string, accepted: () => void): Promise<void>;
    resume(session_id: string): Promise<void>;
  };
  close(): Promise<void>;
}

export type OpenPeer = (place: Place, step: StepFunction, variant: string) => Promise<Peer>;
