import type { CommittedEvent } from "../domain/event.ts";
import type { Session } from "../domain/session.ts";
import type { Store, Topic } from "../store/store.ts";

/** Text of a step while it runs. A step that runs again starts over at `event_seq` 0. It is shown, never stored. */
export type StepDelta = {
  session_id: string;
  conversation_id: string | null;
  iteration: number;
  event_seq: number;
  text: string;
};
export type RuntimeEvent = CommittedEvent | { kind: "delta"; delta: StepDelta };

/** Deltas that wait for a slow reader; older ones are dropped first, since the step's own text follows. */
const MOST_DELTAS = 1000;

type Listener = (delta: StepDelta) => void;

/**
 * What just happened, followable from a cursor: committed rows from the store (none lost, none twice), and between them
 * the text of steps that are running now.
 */
export class Events {
  readonly #store: Store;
  readonly #listeners = new Set<{ topic: Topic; listener: Listener }>();

  constructor(store: Store) {
    this.#store = store;
  }

  publishDelta(session: Session, delta: Pick<StepDelta, "iteration" | "event_seq" | "text">): void {
    const { session_id, conversation_id } = session;
    for (const { topic, listener } of this.#listeners)
      if (concerns(topic, session)) listener({ session_id, conversation_id, ...delta });
  }

  async *follow(topic: Topic, signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
    const deltas: StepDelta[] = [];
    let wake = () => {};
    const entry = {
      topic,
      listener(delta: StepDelta) {
        deltas.push(delta);
        if (deltas.length > MOST_DELTAS) deltas.shift();
        wake();
      },
    };
    this.#listeners.add(entry);
    const leaving = new AbortController();
    const rows = this.#store.follow(topic, AbortSignal.any([signal, leaving.signal]))[Symbol.asyncIterator]();
    try {
      let nextRow = rows.next();
      for (;;) {
        const news = new Promise<"delta">((resolve) => {
          wake = () => resolve("delta");
        });
        // Deltas first: they were told before the step that they belong to was committed.
        for (let delta = deltas.shift(); delta; delta = deltas.shift()) yield { kind: "delta", delta };
        const row = await Promise.race([nextRow, news]);
        if (row === "delta") continue;
        if (row.done) return;
        for (let delta = deltas.shift(); delta; delta = deltas.shift()) yield { kind: "delta", delta };
        yield row.value;
        nextRow = rows.next();
      }
    } finally {
      this.#listeners.delete(entry);
      leaving.abort();
      await rows.return?.(undefined);
    }
  }
}

const concerns = (topic: Topic, { session_id, conversation_id }: Session): boolean =>
  "session_id" in topic
    ? topic.session_id === session_id
    : "conversation_id" in topic
      ? topic.conversation_id === conversation_id
      : true;
