import { setTimeout as wait } from "node:timers/promises";
import { pathOf } from "../server/api.ts";

/** A frozen process answers nothing; a client gives up sooner than it thaws. */
const PATIENCE_MS = 4000;
/** Of a client between two words, so that the machine has time for the faults too. */
const PAUSE_MS = 20;

/** Clients that tell sessions something over HTTP, one word after the other, and remember what was acknowledged. */
export class GuidanceLoad {
  readonly #url: string;
  readonly #session_ids: readonly string[];
  readonly #stopping = new AbortController();
  readonly #clients: Promise<void>[];
  /** The actions that were answered 202. */
  readonly acknowledged = new Set<string>();
  #number = 0;

  constructor(url: string, session_ids: readonly string[], clients: number) {
    this.#url = url;
    this.#session_ids = session_ids;
    this.#clients = Array.from({ length: clients }, () => this.#run());
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#clients);
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#tell().catch(() => {});
      await wait(PAUSE_MS);
    }
  }

  /** What breaks off was not acknowledged, and is not told again. */
  async #tell(): Promise<void> {
    const number = this.#number++;
    const session_id = this.#session_ids[number % this.#session_ids.length] as string;
    const response = await fetch(this.#url + pathOf("sessions", session_id, "interrupt"), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ guidance: `word ${number}` }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const { action_id } = (await response.json()) as { action_id?: string };
    if (response.status === 202 && action_id !== undefined) this.acknowledged.add(action_id);
  }
}
