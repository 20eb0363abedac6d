import type { Message } from "../domain/conversation.ts";
import { EverstepError } from "../domain/errors.ts";
import type { CommittedEvent } from "../domain/event.ts";
import type { Step } from "../domain/step.ts";
import type { Store, Topic } from "./store.ts";

type Reads = Pick<Store, "listSteps" | "listMessages"> & {
  /** Where the feed tells messages' numbers: that of a message, null where it is unknown. */
  messageNumber?(message_id: string): Promise<number | null>;
};
type WaitingEvent = { event: CommittedEvent; number: number | undefined; bytes: number };

/** Events that wait for a slow reader. Past this, rows are read from the store again when the reader gets there. */
const QUEUE_LIMIT = 1000;
const PAGE = 200;

/**
 * Catches up from a cursor, then follows the feed.
 *
 * FOLLOW-1  It listens before it reads, so nothing falls between the two; the cursor tells apart what comes twice that way.
 * FOLLOW-2  Memory is bounded, in events and in bytes: a reader that falls behind drains what waits, then reads on from the rows in the
 *     store. One for whom something must wait that cannot be read again is dropped: nobody gets less than happened unawares.
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

  /** Listens from now on, not only once the first event is asked for. */
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
    // The first row is kept even then: a reader without a cursor reads on from it.
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

/** The events that wait for a reader, oldest first, the newest version of each row only. */
class WaitingEvents {
  readonly #budget: ReaderBudget;
  readonly #events = new Map<string, WaitingEvent>();

  constructor(budget: ReaderBudget) {
    this.#budget = budget;
  }

  get size(): number {
    return this.#events.size;
  }

  /** One that takes an older version's place adds only what it is larger. */
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
  /** Whether the event is new to the reader, who then has it. */
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
      return `action ${event.action.action_id}`;
  }
  return event satisfies never;
}

class StepCursor implements Cursor {
  readonly #reads: Reads;
  readonly #session_id: string;
  #iteration: number | undefined;
  /** `error` rows of the iteration that comes next: they do not move the cursor. */
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
  /** That of the last one, once it is known: a feed that reads on elsewhere may tell older messages again. */
  #number: number | undefined;
  /** Messages that may come once more from the feed after they were read. */
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
    // What is read comes without a number, and without a gap.
    this.#number = number ?? (this.#number === undefined ? undefined : this.#number + 1);
    return true;
  }
}

/** `number` is a message's place in its conversation, where the engine tells it. */
type Listener = (event: CommittedEvent, number?: number) => void;

/** What was just committed, handed to those who listen to its session, its conversation, or to everything. */
export class CommitFeed {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #gapListeners = new Set<() => void>();

  /** `gap` is called where something may have been committed that was not handed on. */
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

  /** The channels that somebody listens to. */
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

/** Bytes of events that may wait in memory for one reader, over all that it follows. */
const MOST_HELD_BYTES = 16 * 1024 * 1024;
/** So many may wait whatever their size: one commit brings several, and a row may be larger than all that may wait. */
const LEAST_EVENTS = 8;
/** No more than these may wait, however small they are. */
const MOST_EVENTS = 10_000;

/** What waits in memory for one reader. Whoever holds events for it counts them here. */
export class ReaderBudget {
  readonly #tooSlow: () => void;
  #bytes = 0;
  #events = 0;

  /** `tooSlow` is called when something could not be kept for the reader, who then gets no more. */
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

/** What V8 needs for a value beside a text's characters: its slot, and its header where it has one. */
const VALUE_BYTES = 32;
const measured = new WeakMap<CommittedEvent, number>();

/** About how much memory an event takes. It is measured once, however many readers there are. */
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
