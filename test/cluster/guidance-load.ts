import { setTimeout as wait } from "node:timers/promises";
import { pathOf } from "../server/api.ts";

/** A frozen process does not respond; a client gives up before it thaws. */
const PATIENCE_MS = 4000;
/** Milliseconds between a client's requests, to leave the machine some time for the faults. */
const PAUSE_MS = 20;

/** Clients that send guidance over HTTP, one piece after another, and remember what was acknowledged. */
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

  /** A request that broke off was not acknowledged, and is not repeated. */
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
