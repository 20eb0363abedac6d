import { setTimeout as wait } from "node:timers/promises";
import { webhookEventSchema } from "../../src/domain/webhook.ts";
import type { Api } from "../../test/server/api.ts";
import type { Random } from "../../test/store/random.ts";
import { Receiver } from "../../test/webhooks/receiver.ts";
import { within } from "../../test/within.ts";

export type Delivered = { id: string; type: string; session_id: string; question_id: string | null; body: string };

const WEBHOOK = "torture";
const FAILING = 0.2;
const PATIENCE_MS = 120_000;

/** Receives the webhooks of every session; fails, hangs up or does not respond until it is told to be good. */
export class BadReceiver implements AsyncDisposable {
  readonly #receiver: Receiver;
  #isGood = false;

  private constructor(receiver: Receiver, random: Random) {
    this.#receiver = receiver;
    receiver.respond = (response) => {
      if (this.#isGood || !random.chance(FAILING)) return void response.writeHead(204).end();
      if (random.chance(0.5)) return void response.writeHead(500).end();
      response.socket?.resetAndDestroy();
    };
  }

  static async open(random: Random): Promise<BadReceiver> {
    return new BadReceiver(await Receiver.start(), random);
  }

  readonly environment = { EVERSTEP_WEBHOOK_ALLOW: "127.0.0.1" };

  get request(): { path: string; body: object } {
    return { path: `/api/webhooks/${WEBHOOK}`, body: { url: this.#receiver.url, events: webhookEventSchema.options } };
  }

  beGood(): void {
    this.#isGood = true;
  }

  /** Every delivery, including repeated ones. */
  get delivered(): Delivered[] {
    return this.#receiver.received.map(({ id, payload, body }) => ({
      id,
      type: payload.type,
      session_id: payload.data.session_id,
      question_id: payload.data.ask?.question_id ?? null,
      body,
    }));
  }

  /** Resolves when no delivery is pending; those waiting for a retry are sent now. */
  async settle(api: Api): Promise<void> {
    const settled = async (): Promise<void> => {
      for (let pending = await this.#pending(api); pending.length > 0; pending = await this.#pending(api)) {
        for (const id of pending) await api.post(`/api/webhooks/${WEBHOOK}/deliveries/${id}/send-again`);
        await wait(1000);
      }
    };
    await within(PATIENCE_MS, settled(), () => "deliveries of webhooks never end");
  }

  async #pending(api: Api): Promise<string[]> {
    const pending: string[] = [];
    for (let after: string | null = null; ; ) {
      const query: string = after === null ? "" : `&after=${encodeURIComponent(after)}`;
      const { text } = await api.get(`/api/webhooks/${WEBHOOK}/deliveries?limit=500${query}`);
      const page = JSON.parse(text) as { deliveries: { delivery_id: string; status: string }[]; next: string | null };
      pending.push(...page.deliveries.filter(({ status }) => status === "pending").map((row) => row.delivery_id));
      if (page.next === null) return pending;
      after = page.next;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#receiver[Symbol.asyncDispose]();
  }
}
