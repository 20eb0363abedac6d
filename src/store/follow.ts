import type { Message } from "../domain/conversation.ts";
import { EverstepError } from "../domain/errors.ts";
import type { CommittedEvent } from "../domain/event.ts";
import type { Step } from "../domain/step.ts";
import type { Store, Topic } from "./store.ts";

type Reads = Pick<Store, "listSteps" | "listMessages"> & {
  /** The number of a message; null if it is unknown. Only if the feed numbers messages. */
  messageNumber?(message_id: string): Promise<number | null>;
};
type WaitingEvent = { event: CommittedEvent; number: number | undefined; bytes: number };

/** How many events wait for a slow reader. Beyond that, the reader gets the rows from the store later. */
const QUEUE_LIMIT = 1000;
const PAGE = 200;

/**
 * Catches up from a cursor, then follows the feed.
 *
 * FOLLOW-1  It subscribes before it reads, so nothing is missed in between; the cursor filters out what arrives both ways.
 * FOLLOW-2  Memory is bounded, in events and in bytes: a reader that falls behind drains its queue, then reads on from the store. If
 *     an event that cannot be read again does not fit, the reader is disconnected, so that no reader misses anything unnoticed.
 */
export function follow(
  reads: Reads,
  feed: CommitFeed,
  topic: Topic,
  signal: AbortSignal,
  budget = new ReaderBudget(),
): AsyncGenerator<CommittedEvent> {
  return new Follower(cursorFor(reads, topic), budget, signal).events(feed, topic);
}

class Follower {
  readonly #cursor: Cursor | null;
  readonly #budget: ReaderBudget;
  readonly #signal: AbortSignal;
  readonly #waiting: WaitingEvents;
  #isBehind: boolean;
  #hasRow = false;
  #isTooSlow = false;
  #stopListening = (): void => {};
  #wake = (): void => {};

  constructor(cursor: Cursor | null, budget: ReaderBudget, signal: AbortSignal) {
    this.#cursor = cursor;
    this.#budget = budget;
    this.#signal = signal;
    this.#waiting = new WaitingEvents(budget);
    this.#isBehind = cursor?.isSet ?? false;
  }

  /** Subscribes now, not only when the first event is requested. */
  events(feed: CommitFeed, topic: Topic): AsyncGenerator<CommittedEvent> {
    this.#stopListening = feed.listen(
      channelFor(topic),
      (event, number) => this.#add(event, number),
      () => {
        this.#isBehind ||= this.#cursor?.isSet ?? false;
        this.#wake();
      },
    );
    if (this.#signal.aborted) this.#end();
    else this.#signal.addEventListener("abort", this.#end, { once: true });
    return this.#read();
  }

  #add(event: CommittedEvent, number: number | undefined): void {
    const isRow = event.kind === "step" || event.kind === "message";
    const waitingEvent = { event, number, bytes: eventBytes(event) };
    const fits = this.#waiting.fits(waitingEvent);
    const isFull = this.#waiting.size >= QUEUE_LIMIT || !fits;
    // The first row is always kept: a reader without a cursor reads on from it.
    if (isRow && this.#cursor && (this.#isBehind || (isFull && (this.#cursor.isSet || this.#hasRow))))
      this.#isBehind = true;
    else if (fits) {
      this.#waiting.add(waitingEvent);
      this.#hasRow ||= isRow;
    } else {
      this.#isTooSlow = true;
      this.#end();
      this.#budget.exceed();
    }
    this.#wake();
  }

  async *#read(): AsyncGenerator<CommittedEvent> {
    try {
      while (!this.#signal.aborted) {
        if (this.#isTooSlow) throw readerTooSlow();
        const next = this.#waiting.shift();
        if (next) {
          if (this.#cursor?.take(next.event, next.number) ?? true) yield next.event;
        } else if (this.#isBehind && this.#cursor) {
          this.#isBehind = false; // FOLLOW-1: from here on new rows wait in the queue while older ones are read.
          yield* this.#missed(this.#cursor);
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      this.#end();
      this.#signal.removeEventListener("abort", this.#end);
    }
  }

  async *#missed(cursor: Cursor): AsyncGenerator<CommittedEvent> {
    for await (const event of cursor.missed()) {
      if (this.#signal.aborted) return;
      this.#waiting.delete(event);
      if (cursor.take(event)) yield event;
    }
  }

  readonly #end = (): void => {
    this.#stopListening();
    this.#waiting.clear();
    this.#wake();
  };
}

/** The events queued for a reader, oldest first, with only the newest version of each row, and of each turn of a receipt. */
class WaitingEvents {
  readonly #budget: ReaderBudget;
  readonly #events = new Map<string, WaitingEvent>();

  constructor(budget: ReaderBudget) {
    this.#budget = budget;
  }

  get size(): number {
    return this.#events.size;
  }

  /** An event that replaces an older version counts only by how much larger it is. */
  fits({ event, bytes }: WaitingEvent): boolean {
    return this.#budget.fits(bytes - (this.#events.get(keyOf(event))?.bytes ?? 0));
  }

  add(waitingEvent: WaitingEvent): void {
    this.delete(waitingEvent.event);
    this.#events.set(keyOf(waitingEvent.event), waitingEvent);
    this.#budget.add(waitingEvent.bytes);
  }

  delete(event: CommittedEvent): void {
    const key = keyOf(event);
    const waitingEvent = this.#events.get(key);
    if (waitingEvent && this.#events.delete(key)) this.#budget.remove(waitingEvent.bytes);
  }

  shift(): WaitingEvent | undefined {
    const [waitingEvent] = this.#events.values();
    if (waitingEvent) this.delete(waitingEvent.event);
    return waitingEvent;
  }

  clear(): void {
    for (const { bytes } of this.#events.values()) this.#budget.remove(bytes);
    this.#events.clear();
  }
}

/** How far a reader got. */
type Cursor = {
  readonly isSet: boolean;
  /** Whether the event is new to the reader; it then counts as read. */
  take(event: CommittedEvent, number?: number): boolean;
  missed(): AsyncIterable<CommittedEvent>;
};

function cursorFor(reads: Reads, topic: Topic): Cursor | null {
  if ("session_id" in topic) return new StepCursor(reads, topic.session_id, topic.after_iteration);
  if ("conversation_id" in topic) return new MessageCursor(reads, topic.conversation_id, topic.after);
  return null;
}

export const channelFor = (topic: Topic): string =>
  "session_id" in topic
    ? sessionChannel(topic.session_id)
    : "conversation_id" in topic
      ? conversationChannel(topic.conversation_id)
      : ALL_CHANNEL;

function keyOf(event: CommittedEvent): string {
  switch (event.kind) {
    case "step":
      return `step ${event.step.id}`;
    case "message":
      return `message ${event.message.message_id}`;
    case "session":
      return `session ${event.session.session_id}`;
    case "action":
      // Each turn of its receipt is told.
      return `action ${event.action.action_id} ${event.action.receipt} ${event.action.outcome}`;
  }
  return event satisfies never;
}

class StepCursor implements Cursor {
  readonly #reads: Reads;
  readonly #session_id: string;
  #iteration: number | undefined;
  /** `error` rows of the next iteration, which do not advance the cursor. */
  #errors = new Set<string>();

  constructor(reads: Reads, session_id: string, after_iteration: number | undefined) {
    this.#reads = reads;
    this.#session_id = session_id;
    this.#iteration = after_iteration;
  }

  get isSet(): boolean {
    return this.#iteration !== undefined;
  }

  take(event: CommittedEvent): boolean {
    return event.kind !== "step" || this.#takeStep(event.step);
  }

  async *missed(): AsyncGenerator<CommittedEvent> {
    const after_iteration = this.#iteration ?? -1;
    for (let offset = 0; ; offset += PAGE) {
      const page = await this.#reads.listSteps({ session_id: this.#session_id, after_iteration, limit: PAGE, offset });
      for (const step of page) yield { kind: "step", step };
      if (page.length < PAGE) return;
    }
  }

  #takeStep({ id, iteration, status }: Step): boolean {
    if (this.#iteration !== undefined && iteration <= this.#iteration) return false;
    if (status === "error") {
      if (this.#errors.has(id)) return false;
      this.#errors.add(id);
      this.#iteration ??= iteration - 1;
      return true;
    }
    this.#iteration = iteration;
    this.#errors.clear();
    return true;
  }
}

class MessageCursor implements Cursor {
  readonly #reads: Reads;
  readonly #conversation_id: string;
  #last: string | undefined;
  /** The last message's number, once known: the feed may repeat older messages after a gap. */
  #number: number | undefined;
  /** Messages that were read and may come from the feed as well. */
  readonly #recent = new Set<string>();

  constructor(reads: Reads, conversation_id: string, after: string | undefined) {
    this.#reads = reads;
    this.#conversation_id = conversation_id;
    this.#last = after;
  }

  get isSet(): boolean {
    return this.#last !== undefined;
  }

  take(event: CommittedEvent, number?: number): boolean {
    return event.kind !== "message" || this.#takeMessage(event.message, number);
  }

  async *missed(): AsyncGenerator<CommittedEvent> {
    if (this.#number === undefined && this.#reads.messageNumber)
      this.#number = this.#last ? ((await this.#reads.messageNumber(this.#last)) ?? undefined) : 0;
    for (;;) {
      const after = this.#last;
      const page = await this.#reads.listMessages({
        conversation_id: this.#conversation_id,
        limit: PAGE,
        offset: 0,
        ...(after ? { after } : {}),
      });
      for (const message of page) yield { kind: "message", message };
      if (page.length < PAGE) return;
    }
  }

  #takeMessage({ message_id }: Message, number: number | undefined): boolean {
    if (number !== undefined && this.#number !== undefined && number <= this.#number) return false;
    if (this.#recent.has(message_id)) return false;
    this.#recent.add(message_id);
    if (this.#recent.size > QUEUE_LIMIT * 2) this.#recent.delete(this.#recent.values().next().value as string);
    this.#last = message_id;
    // Messages that are read come without numbers and without gaps.
    this.#number = number ?? (this.#number === undefined ? undefined : this.#number + 1);
    return true;
  }
}

/** `number` is a message's place in its conversation, if the engine provides it. */
type Listener = (event: CommittedEvent, number?: number) => void;

/** Passes what was just committed to the listeners of its session, of its conversation, and of everything. */
export class CommitFeed {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #gapListeners = new Set<() => void>();

  /** `gap` is called when something may have been committed that was not published. */
  listen(channel: string, listener: Listener, gap: () => void = () => {}): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    this.#gapListeners.add(gap);
    return () => {
      listeners.delete(listener);
      this.#gapListeners.delete(gap);
      if (listeners.size === 0 && this.#listeners.get(channel) === listeners) this.#listeners.delete(channel);
    };
  }

  /** The channels that have listeners. */
  get channels(): ReadonlyMap<string, unknown> {
    return this.#listeners;
  }

  gap(): void {
    for (const listener of this.#gapListeners) listener();
  }

  /** In the order of the commits. */
  publish(event: CommittedEvent, number?: number): void {
    if (this.#listeners.size === 0) return;
    for (const channel of [channelOf(event), ALL_CHANNEL]) {
      for (const listener of this.#listeners.get(channel) ?? []) listener(event, number);
    }
  }
}

export const ALL_CHANNEL = "all";
export const sessionChannel = (session_id: string): string => `session:${session_id}`;
export const conversationChannel = (conversation_id: string): string => `conversation:${conversation_id}`;

function channelOf(event: CommittedEvent): string {
  switch (event.kind) {
    case "step":
      return sessionChannel(event.step.session_id);
    case "session":
      return sessionChannel(event.session.session_id);
    case "action":
      return sessionChannel(event.action.session_id);
    case "message":
      return conversationChannel(event.message.conversation_id);
  }
  return event satisfies never;
}

/** Bytes of events that may be queued for one reader, over everything it follows. */
const MOST_HELD_BYTES = 16 * 1024 * 1024;
/** This many may be queued whatever their size: one commit brings several, and a single row may exceed the limit. */
const LEAST_EVENTS = 8;
/** No more than this many may be queued, however small they are. */
const MOST_EVENTS = 10_000;

/** The memory used by what is queued for one reader. Everything that holds events for it counts them here. */
export class ReaderBudget {
  readonly #tooSlow: () => void;
  #bytes = 0;
  #events = 0;

  /** `tooSlow` is called when an event could not be kept for the reader, which then gets no more. */
  constructor(tooSlow: () => void = () => {}) {
    this.#tooSlow = tooSlow;
  }

  fits(bytes: number): boolean {
    if (this.#events < LEAST_EVENTS) return true;
    return this.#events < MOST_EVENTS && this.#bytes + bytes <= MOST_HELD_BYTES;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    this.#events += 1;
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
    this.#events -= 1;
  }

  exceed(): void {
    this.#tooSlow();
  }
}

export const readerTooSlow = (): EverstepError =>
  new EverstepError(
    "reader_too_slow",
    "more happened than may wait in memory for one reader",
    "follow again from the last iteration or message that came",
  );

/** What V8 needs for a value besides a string's characters: its slot and its header. */
const VALUE_BYTES = 32;
const measured = new WeakMap<CommittedEvent, number>();

/** Roughly how much memory an event takes. It is measured once, however many readers there are. */
function eventBytes(event: CommittedEvent): number {
  const size = measured.get(event);
  if (size !== undefined) return size;
  const bytes = bytesOf(event);
  measured.set(event, bytes);
  return bytes;
}

function bytesOf(event: CommittedEvent): number {
  let bytes = 0;
  const rest: unknown[] = [event];
  while (rest.length > 0) {
    const value = rest.pop();
    bytes += VALUE_BYTES;
    if (typeof value === "string") bytes += value.length;
    else if (Array.isArray(value)) for (const item of value) rest.push(item);
    else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) rest.push(item);
  }
  return bytes;
}
