import type { Message } from "../../../src/domain/conversation.ts";
import type { CommittedEvent } from "../../../src/domain/event.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { Store, Topic } from "../../../src/store/store.ts";

type Kind = CommittedEvent["kind"];
type RowOf<K extends Kind> =
  Extract<CommittedEvent, { kind: K }> extends infer Event ? Event[Exclude<keyof Event, "kind">] : never;

/** The rows of one kind among events, in order of arrival. */
export function rowsOf<K extends Kind>(events: CommittedEvent[], kind: K): RowOf<K>[] {
  return events.filter((event) => event.kind === kind).map((event) => event[kind as keyof typeof event] as RowOf<K>);
}

/** Follows a topic from the moment of the call. */
export class Follower {
  readonly events: CommittedEvent[] = [];
  readonly #abort = new AbortController();
  readonly #ended: Promise<void>;
  #changed = Promise.withResolvers<void>();

  constructor(store: Store, topic: Topic) {
    this.#ended = this.#read(store.follow(topic, this.#abort.signal));
  }

  async until(enough: (events: CommittedEvent[]) => boolean): Promise<void> {
    while (!enough(this.events)) await this.#changed.promise;
  }

  async untilStep(step: Step): Promise<void> {
    await this.until((events) => rowsOf(events, "step").some(({ id }) => id === step.id));
  }

  async untilMessage({ message_id }: Message): Promise<void> {
    await this.until((events) => rowsOf(events, "message").some((message) => message.message_id === message_id));
  }

  /** Once aborted it ends by itself, without an error. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#ended;
  }

  ended(): Promise<void> {
    return this.#ended;
  }

  async #read(events: AsyncIterable<CommittedEvent>): Promise<void> {
    for await (const event of events) {
      this.events.push(event);
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    }
  }
}
