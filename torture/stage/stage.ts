import type { DatabaseFault, StoreKind } from "../plan/plan.ts";
import type { Violations } from "../violations.ts";
import type { Supervised } from "./supervised.ts";

/** The product's processes and what they stand on. */
export type Stage = AsyncDisposable & {
  /** Where clients find it. The addresses stay, whatever happens to the processes. */
  urls: readonly string[];
  /** What `EVERSTEP_STORE` says. */
  store_url: string;
  members: Supervised[];
  /** What can be broken beside the processes; null where this machine or this store has no such thing. */
  disk: { fill(free_bytes: number): Promise<void>; empty(): Promise<void> } | null;
  database: { break(fault: DatabaseFault): Promise<void> } | null;
};

export type OpenStage = (violations: Violations) => Promise<Stage>;
export type Stages = Readonly<Record<StoreKind, OpenStage>>;

/** Counts what is broken on purpose, and for a moment afterwards. */
export class Excuses {
  #count = 0;
  #until = 0;

  readonly holds = (): boolean => this.#count > 0 || performance.now() < this.#until;

  async during(work: () => Promise<void>): Promise<void> {
    this.#count += 1;
    try {
      await work();
    } finally {
      this.#count -= 1;
      this.#until = performance.now() + AFTERWARDS_MS;
    }
  }
}

const AFTERWARDS_MS = 3000;

export const ENVIRONMENT = { EVERSTEP_LOG_LEVEL: "error", EVERSTEP_RATE_LIMIT: "1000000" };
