import type { Message } from "../domain/conversation.ts";
import type { CommittedEvent } from "../domain/event.ts";
import type { Step } from "../domain/step.ts";
import { ALL_CHANNEL, type CommitFeed, conversationChannel, sessionChannel } from "./commit-feed.ts";
import type { Store, Topic } from "./store.ts";

type Reads = Pick<Store, "listSteps" | "listMessages"> & {
  /** Where the feed tells messages' numbers: that of a message, null where it is unknown. */
  messageNumber?(message_id: string): Promise<number | null>;
};
type Told = { event: CommittedEvent; number: number | undefined };

/** Events that wait for a slow reader. Past this, rows are read from the store again when the reader gets there. */
const QUEUE_LIMIT = 1000;
const PAGE = 200;
/** Past this, the oldest versions of rows that change are dropped, and of everything where there is no cursor to read on from. */
const MOST_CHANGES = 10_000;

/**
 * Catches up from a cursor, then follows the feed.
 *
 * F1  It listens before it reads, so nothing falls between the two; what comes twice that way is told apart by the cursor.
 * F2  Memory is bounded: a reader that falls behind drains what waits, then reads on from the rows in the store.
 */
export function follow(
  reads: Reads,
  feed: CommitFeed,
  topic: Topic,
  signal: AbortSignal,
): AsyncGenerator<CommittedEvent> {
  const cursor = cursorFor(reads, topic);
  const waiting = new Map<string, Told>();
  let behind = cursor?.isSet ?? false;
  let hasRow = false;
  let wake = () => {};
  const listener = (event: CommittedEvent, number?: number): void => {
    const isRow = event.kind === "step" || event.kind === "message";
    const isFull = waiting.size >= QUEUE_LIMIT;
    // The first row is kept even then: a reader without a cursor reads on from it.
    if (isRow && cursor && (behind || (isFull && (cursor.isSet || hasRow)))) behind = true;
    else {
      const key = keyOf(event);
      waiting.delete(key);
      waiting.set(key, { event, number });
      hasRow ||= isRow;
      if (waiting.size > MOST_CHANGES) waiting.delete(firstKey(waiting, cursor !== null));
    }
    wake();
  };
  const stop = feed.listen(channelFor(topic), listener, () => {
    behind ||= cursor?.isSet ?? false;
    wake();
  });
  const end = () => {
    stop();
    wake();
  };
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });

  async function* events(): AsyncGenerator<CommittedEvent> {
    try {
      while (!signal.aborted) {
        const next = waiting.entries().next();
        if (!next.done) {
          const [key, { event, number }] = next.value;
          waiting.delete(key);
          if (cursor?.take(event, number) ?? true) yield event;
        } else if (behind && cursor) {
          behind = false; // F1: from here on new rows wait in the queue while older ones are read.
          for await (const event of cursor.missed()) {
            if (signal.aborted) return;
            waiting.delete(keyOf(event));
            if (cursor.take(event)) yield event;
          }
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      stop();
      signal.removeEventListener("abort", end);
    }
  }
  return events();
}

/** The oldest event that may be dropped: rows are kept where a cursor depends on them. */
function firstKey(waiting: Map<string, Told>, keepsRows: boolean): string {
  for (const [key, { event }] of waiting)
    if (!keepsRows || (event.kind !== "step" && event.kind !== "message")) return key;
  return waiting.keys().next().value as string;
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
