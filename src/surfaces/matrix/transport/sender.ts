import type { Logger } from "pino";
import { sleep } from "../../../concurrency/backoff.ts";
import { catalogue, LANGUAGES } from "../catalogue/catalogue.ts";
import type { Encryption } from "../encryption/encryption.ts";
import { asEdit, contentOf, type MessageContent } from "../outgoing/content.ts";
import { reasonOf } from "../outgoing/plain-notice.ts";
import type { BotState } from "../state/bot-state.ts";
import type { OutboxRow } from "../state/outbox.ts";
import { isStateFault } from "../state/state-fault.ts";
import { failureOf } from "./failure.ts";
import type { Homeserver, WireMessage } from "./homeserver.ts";
import { type Preview, Previews } from "./previews.ts";

const MOST_IN_FLIGHT = 6;
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 2000;
/** Attempts for a message on which the homeserver fails. If the homeserver is away, attempts are not limited. */
const MOST_BROKEN_TRIES = 8;
/** Attempts for a message that its room refuses, in about five seconds. */
const MOST_REFUSALS = 6;
/** Attempts for a message that does not get through while the homeserver answers otherwise, in about a quarter of an hour. */
const STUCK: StuckLimits = { most_tries: 30, longest_wait_ms: 30_000 };

/** What the bot says in rooms that it cannot read. */
const REFUSALS = new Set(
  LANGUAGES.map((language) => contentOf(catalogue(language).encrypted, { is_notice: true }).body),
);

type StuckLimits = { most_tries: number; longest_wait_ms: number };

export type SenderOptions = {
  homeserver: Homeserver;
  state: BotState;
  /** Null if the bot does not encrypt. */
  encryption: Encryption | null;
  log: Logger;
  /** What to say in a room where a message was refused because of its content. */
  undeliverable: MessageContent;
  stuck?: StuckLimits;
};

/**
 * Sends the outbox: in each room in order, one message at a time; rooms do not wait for each other.
 *
 * MATRIX-SENDER-1  A row leaves the outbox when the homeserver has accepted it, or never will.
 * MATRIX-SENDER-2  When the homeserver rate-limits the bot, everything waits as long as it says, and answers go before previews.
 * MATRIX-SENDER-3  A failing message delays no other room, and a message that fails for its own reason delays its room
 *                  only for a while: then it is given up, and the room is told.
 * MATRIX-SENDER-4  A message to an encrypted room is encrypted once, and its ciphertext is stored before the first attempt; retries send the same.
 * MATRIX-SENDER-5  A bot with encryption off says nothing else in an encrypted room: questions asked there while it was on are not
 *                  answered in the clear.
 * MATRIX-SENDER-6  What an upgraded room refuses goes to its replacement: the refusal proves that it was not sent.
 */
export class Sender {
  readonly #options: SenderOptions;
  readonly #previews = new Previews();
  readonly #busyRooms = new Set<string>();
  readonly #flights = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<() => void>();
  #wake = () => {};
  #running: Promise<void> | undefined;
  #limitedUntil = 0;
  /** MATRIX-SENDER-3: when a room may be tried again after a failure. */
  readonly #notBefore = new Map<string, number>();
  /** Consecutive failures to reach the homeserver. */
  #failures = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#running;
    await Promise.all(this.#flights);
  }

  /** The outbox has something new. */
  wake(): void {
    this.#wake();
  }

  /** The listener is called whenever a row was sent or given up. */
  onSettled(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Shows the progress of an answer when the rate limit allows. It is not stored: only the latest counts, and the answer itself follows. */
  preview(preview: Preview): void {
    this.#previews.offer(preview);
    this.#wake();
  }

  forgetPreview(room_id: string): void {
    this.#previews.forget(room_id);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const wait_ms = this.#launch();
      if (wait_ms === null) await woken;
      else if (wait_ms > 0) {
        const early = new AbortController();
        void woken.then(() => early.abort());
        await sleep(wait_ms, AbortSignal.any([signal, early.signal]));
      }
    }
  }

  /** Starts what can be started. Returns the milliseconds until there may be more to do; null: not before it is woken. */
  #launch(): number | null {
    const limited_ms = this.#limitedUntil - Date.now();
    if (limited_ms > 0) return limited_ms;
    const heads = this.#options.state.outbox.heads();
    const waiting: number[] = [];
    for (const row of heads) {
      if (this.#flights.size >= MOST_IN_FLIGHT) return null;
      const due_ms = (this.#notBefore.get(row.room_id) ?? 0) - Date.now();
      if (due_ms > 0) waiting.push(due_ms);
      else if (!this.#busyRooms.has(row.room_id)) this.#fly(row.room_id, () => this.#send(row));
    }
    const wait_ms = waiting.length === 0 ? null : Math.min(...waiting);
    // MATRIX-SENDER-2
    const isPreviewFree = waiting.length === heads.length && this.#failures === 0;
    const preview = isPreviewFree ? this.#previews.due(this.#busyRooms) : "none";
    if (preview === "none") return wait_ms;
    if (typeof preview === "number") return Math.min(preview, wait_ms ?? preview);
    this.#fly(preview.room_id, () => this.#show(preview));
    return 0;
  }

  #fly(room_id: string, work: () => Promise<void>): void {
    this.#busyRooms.add(room_id);
    const flight = work()
      .catch((error: unknown) => {
        this.#options.log.error({ err: error }, "a message could not be handled");
        this.#waitFor(room_id, LONGEST_RETRY_MS);
      })
      .finally(() => {
        this.#busyRooms.delete(room_id);
        this.#flights.delete(flight);
        this.#wake();
      });
    this.#flights.add(flight);
  }

  async #send(row: OutboxRow): Promise<void> {
    const { state } = this.#options;
    const { transaction_id, room_id } = row;
    if (row.ciphertext === null && this.#wouldBeReadable(room_id, row.content)) {
      state.transaction(() =>
        state.outbox.failed(transaction_id, "the room is encrypted, and the bot does not encrypt"),
      );
      for (const listener of this.#listeners) listener();
      return;
    }
    // A preview that was never tried can be taken back, so the first attempt is recorded.
    if (row.rank === "preview" && row.attempts === 0) state.transaction(() => state.outbox.tried(transaction_id));
    try {
      const event_id = await (row.kind === "message" ? this.#sendMessage(row) : this.#sendAbout(row));
      state.transaction(() =>
        event_id === null
          ? state.outbox.failed(transaction_id, "what it is about was not sent")
          : state.outbox.sent(transaction_id, event_id),
      );
      this.#failures = 0;
      this.#notBefore.delete(room_id);
    } catch (error) {
      return this.#failed(row, error);
    }
    for (const listener of this.#listeners) listener();
  }

  async #sendMessage(row: OutboxRow): Promise<string> {
    const message = await this.#messageOf(row);
    return this.#options.homeserver.send(row.room_id, row.transaction_id, message, this.#stopping.signal);
  }

  /** A reaction, which clients do not encrypt either, or a redaction. Null if its target does not exist. */
  async #sendAbout({ kind, room_id, transaction_id, target, content }: OutboxRow): Promise<string | null> {
    const { homeserver, state } = this.#options;
    const { signal } = this.#stopping;
    const event_id = target?.startsWith("$") ? target : (state.outbox.find(target ?? "")?.event_id ?? null);
    if (event_id === null) return null;
    if (kind === "redaction") return homeserver.redact(room_id, transaction_id, event_id, signal);
    const relation = { rel_type: "m.annotation", event_id, key: content.body };
    const reaction = { type: "m.reaction", content: { "m.relates_to": relation } } as const;
    return homeserver.send(room_id, transaction_id, reaction, signal);
  }

  /** MATRIX-SENDER-4 */
  async #messageOf(row: OutboxRow): Promise<WireMessage> {
    const { state } = this.#options;
    const { transaction_id, room_id, ciphertext } = row;
    if (ciphertext !== null) return encryptedMessage(ciphertext);
    return this.#encrypted(room_id, this.#contentOf(row), (made) => state.outbox.encrypted(transaction_id, made));
  }

  async #encrypted(room_id: string, content: MessageContent, keep: (ciphertext: string) => void): Promise<WireMessage> {
    const { encryption } = this.#options;
    if (!encryption?.isEncrypted(room_id)) return { type: "m.room.message", content };
    return encryptedMessage(await encryption.encrypt(room_id, content, keep, this.#stopping.signal));
  }

  /** MATRIX-SENDER-5 */
  #wouldBeReadable(room_id: string, { body }: MessageContent): boolean {
    const { encryption, state } = this.#options;
    return encryption === null && !REFUSALS.has(body) && state.encrypted_rooms.has(room_id);
  }

  #contentOf({ content, edits }: OutboxRow): MessageContent {
    const event_id = edits === null ? null : (this.#options.state.outbox.find(edits)?.event_id ?? null);
    return event_id === null ? content : asEdit(content, event_id);
  }

  async #failed(row: OutboxRow, error: unknown): Promise<void> {
    const { state, log, undeliverable, stuck: { most_tries, longest_wait_ms } = STUCK } = this.#options;
    if (this.#stopping.signal.aborted) return;
    // The message is not at fault.
    if (isStateFault(error)) throw error;
    const failure = failureOf(error);
    const { transaction_id, room_id } = row;
    switch (failure.kind) {
      case "limited":
        this.#limitedUntil = Date.now() + failure.retry_after_ms;
        this.#previews.slowDown();
        return;
      case "away":
      case "unauthorized": {
        log.warn({ room_id, failure }, "a message waits for the homeserver");
        // MATRIX-SENDER-3: only attempts that the homeserver could have accepted count.
        if (failure.kind === "unauthorized" || !(await this.#isThere()))
          return this.#waitFor(room_id, retryMs(this.#failures++));
        const attempts = state.transaction(() => state.outbox.tried(transaction_id));
        if (attempts < most_tries) return this.#waitFor(room_id, retryMs(attempts, longest_wait_ms));
        break;
      }
      case "broken": {
        const attempts = state.transaction(() => state.outbox.tried(transaction_id));
        if (attempts < MOST_BROKEN_TRIES) return this.#waitFor(room_id, retryMs(attempts));
        break;
      }
      case "refused": {
        if (failure.is_about_content || row.kind !== "message") break;
        // MATRIX-SENDER-6
        const replacement = state.room_upgrades.replacementOf(room_id);
        if (replacement !== null) return state.transaction(() => state.outbox.move(transaction_id, replacement));
        // The next sync may announce the replacement room, and joining it takes a moment.
        const attempts = state.transaction(() => state.outbox.tried(transaction_id));
        if (attempts < MOST_REFUSALS) return this.#waitFor(room_id, retryMs(attempts));
        break;
      }
      default:
        failure satisfies never;
    }
    log.error({ room_id, failure }, "a message was given up");
    this.#notBefore.delete(room_id);
    state.transaction(() => {
      state.outbox.failed(transaction_id, reasonOf(error));
      // Not if the room itself is closed to the bot, and not for ever.
      const isAboutContent = row.kind === "message" && (failure.kind !== "refused" || failure.is_about_content);
      if (isAboutContent && row.content.body !== undeliverable.body) state.outbox.add(room_id, undeliverable);
    });
    for (const listener of this.#listeners) listener();
  }

  #waitFor(room_id: string, ms: number): void {
    this.#notBefore.set(room_id, Date.now() + ms);
  }

  async #isThere(): Promise<boolean> {
    const { signal } = this.#stopping;
    const answered = this.#options.homeserver.whoami(signal).then(
      () => true,
      () => false,
    );
    return (await answered) && !signal.aborted;
  }

  async #show({ room_id, transaction_id, content }: Preview): Promise<void> {
    const shown = this.#options.state.outbox.find(transaction_id)?.event_id;
    if (!shown || this.#wouldBeReadable(room_id, content())) return;
    try {
      const { signal } = this.#stopping;
      const message = await this.#encrypted(room_id, asEdit(content(), shown), () => {});
      await this.#options.homeserver.send(room_id, `${transaction_id}-${Date.now()}`, message, signal);
      this.#previews.shown();
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind === "limited") this.#limitedUntil = Date.now() + failure.retry_after_ms;
      this.#previews.slowDown();
    }
  }
}

const encryptedMessage = (ciphertext: string): WireMessage => ({
  type: "m.room.encrypted",
  content: JSON.parse(ciphertext) as Record<string, unknown>,
});

const retryMs = (failures: number, longest_ms = LONGEST_RETRY_MS): number =>
  Math.min(longest_ms, FIRST_RETRY_MS * 2 ** Math.min(failures, 10)) * (0.75 + Math.random() / 2);
