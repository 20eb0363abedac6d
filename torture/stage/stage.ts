import type { DatabaseFault, StoreKind } from "../plan/plan.ts";
import type { Surroundings } from "../surroundings/surroundings.ts";
import type { Violations } from "../violations.ts";
import type { Supervised } from "./supervised.ts";

/** The product's processes and the disk and database they depend on. */
export type Stage = AsyncDisposable & {
  /** The servers' addresses. They stay the same, whatever happens to the processes. */
  urls: readonly string[];
  /** The value of `EVERSTEP_STORE`. */
  store_url: string;
  members: Supervised[];
  /** What else can be broken besides the processes; null if this machine or this store does not have it. */
  disk: { fill(free_bytes: number): Promise<void>; empty(): Promise<void> } | null;
  database: { break(fault: DatabaseFault): Promise<void> } | null;
  /** Changes the monikers' code; a process uses it after a reload or a start. */
  changeCode: () => Promise<void>;
};

export type OpenStage = (violations: Violations, surroundings: Surroundings) => Promise<Stage>;
export type Stages = Readonly<Record<StoreKind, OpenStage>>;

/** Counts the faults in effect, including a short time after each. */
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
