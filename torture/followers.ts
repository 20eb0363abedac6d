import { setTimeout as wait } from "node:timers/promises";
import type { Message } from "../src/domain/conversation.ts";
import type { Step } from "../src/domain/step.ts";
import { Watcher } from "../test/server/watcher.ts";
import type { Random } from "../test/store/random.ts";
import { digested } from "./rows.ts";

export type Followed = { session_id: string } | { conversation_id: string };

const RETRY_MS = 100;
const CONNECT_MS = 3000;

/** Follows one session or conversation from its beginning, reconnecting from where the last connection broke. */
export class Follower {
  readonly topic: Followed;
  /** What each connection received. */
  readonly connections: { steps: Step[]; messages: Message[] }[] = [];
  readonly #urls: readonly string[];
  readonly #random: Random;
  readonly #ending = new AbortController();
  readonly #ended: Promise<void>;
  #watcher: Watcher | undefined;

  constructor(topic: Followed, urls: readonly string[], random: Random) {
    this.topic = topic;
    this.#urls = urls;
    this.#random = random;
    this.#ended = this.#follow();
  }

  /** Every row received, in order of arrival. */
  get steps(): Step[] {
    return this.connections.flatMap(({ steps }) => steps);
  }

  get messages(): Message[] {
    return this.connections.flatMap(({ messages }) => messages);
  }

  cut(): void {
    this.#watcher?.socket.disconnect();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.cut();
    await this.#ended;
  }

  async #follow(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      await this.#connection().catch(() => {});
      await wait(RETRY_MS);
    }
  }

  async #connection(): Promise<void> {
    using watcher = await Watcher.connect(this.#random.pick(this.#urls), { timeout: CONNECT_MS });
    this.#watcher = watcher;
    const connection: (typeof this.connections)[number] = { steps: [], messages: [] };
    const topic = this.#cursor();
    this.connections.push(connection);
    watcher.socket.on("agent_step", (step: Step) => connection.steps.push({ ...step, state: digested(step.state) }));
    watcher.socket.on("conversation_message", (message: Message) => connection.messages.push(message));
    const left = new Promise((resolve) => watcher.socket.once("disconnect", resolve));
    await watcher.follow(topic);
    if (this.#ending.signal.aborted) return;
    if (watcher.socket.connected) await left;
  }

  #cursor(): Record<string, unknown> {
    if ("conversation_id" in this.topic) return { ...this.topic, after: this.messages.at(-1)?.message_id ?? "" };
    const last = this.steps.findLast(({ status }) => status === "ok")?.iteration ?? -1;
    return { ...this.topic, after_iteration: last };
  }
}

export class Followers {
  readonly all: Follower[] = [];
  readonly #urls: readonly string[];
  readonly #random: Random;

  constructor(urls: readonly string[], random: Random) {
    this.#urls = urls;
    this.#random = random;
  }

  follow(topic: Followed): void {
    this.all.push(new Follower(topic, this.#urls, this.#random));
  }

  /** Any number selects a follower. */
  cut(number: number): void {
    this.all[number % this.all.length]?.cut();
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map((follower) => follower.stop()));
  }
}
