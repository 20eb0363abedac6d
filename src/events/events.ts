import type { CommittedEvent, StepDelta } from "../domain/event.ts";
import type { Session } from "../domain/session.ts";
import type { ReaderBudget } from "../store/follow.ts";
import type { Store, Topic } from "../store/store.ts";

export type RuntimeEvent = CommittedEvent | { kind: "delta"; delta: StepDelta };

/** The most deltas and characters buffered for a slow reader; the oldest are dropped first, since the step's full text follows. */
const MOST_DELTAS = 1000;
const MOST_DELTA_TEXT = 1024 * 1024;
/** How many sessions' last steps are remembered to filter out late deltas. */
const MOST_SESSIONS = 1000;

type Listener = (delta: StepDelta) => void;

/**
 * Live events, followable from a cursor: committed rows from the store (none lost, none twice), and between them partial text
 * of running steps.
 */
export class Events {
  readonly #store: Store;
  readonly #listeners = new Set<{ topic: Topic; listener: Listener }>();

  constructor(store: Store) {
    this.#store = store;
    store.onDelta?.((delta) => this.#deliver(delta));
  }

  publishDelta(session: Session, delta: Omit<StepDelta, "session_id" | "conversation_id">): void {
    const { session_id, conversation_id } = session;
    const whole = { session_id, conversation_id, ...delta };
    this.#deliver(whole);
    this.#store.publishDelta?.(whole);
  }

  #deliver(delta: StepDelta): void {
    for (const { topic, listener } of this.#listeners) if (concerns(topic, delta)) listener(delta);
  }

  /** Listens from the call on, until the signal aborts or the reader leaves. Buffered rows count towards the reader's budget. */
  follow(topic: Topic, signal: AbortSignal, budget?: ReaderBudget): AsyncGenerator<RuntimeEvent> {
    const deltas = new DeltaBuffer();
    const arrival = { notify: () => {} };
    const entry = {
      topic,
      listener(delta: StepDelta) {
        deltas.push(delta);
        arrival.notify();
      },
    };
    this.#listeners.add(entry);
    const leaving = new AbortController();
    const leave = () => {
      this.#listeners.delete(entry);
      leaving.abort();
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    const rows = this.#store.follow(topic, leaving.signal, budget)[Symbol.asyncIterator]();
    return merged(rows, deltas, arrival, () => {
      signal.removeEventListener("abort", leave);
      leave();
    });
  }
}

class DeltaBuffer {
  readonly #deltas: StepDelta[] = [];
  #characters = 0;

  push(delta: StepDelta): void {
    this.#deltas.push(delta);
    this.#characters += delta.text.length;
    while (this.#deltas.length > MOST_DELTAS || (this.#characters > MOST_DELTA_TEXT && this.#deltas.length > 1))
      this.shift();
  }

  shift(): StepDelta | undefined {
    const delta = this.#deltas.shift();
    this.#characters -= delta?.text.length ?? 0;
    return delta;
  }
}

/**
 * Deltas first: they were published before their step was committed. If rows and deltas come from another process, the step may
 * still arrive first; then its deltas are dropped.
 */
async function* merged(
  rows: AsyncIterator<CommittedEvent>,
  deltas: DeltaBuffer,
  arrival: { notify: () => void },
  leave: () => void,
): AsyncGenerator<RuntimeEvent> {
  const lastSteps = new Map<string, number>();
  try {
    let nextRow = rows.next();
    for (;;) {
      const delta = new Promise<"delta">((resolve) => {
        arrival.notify = () => resolve("delta");
      });
      yield* drain(deltas, lastSteps);
      const row = await Promise.race([nextRow, delta]);
      if (row === "delta") continue;
      if (row.done) return;
      yield* drain(deltas, lastSteps);
      noteEnd(row.value, lastSteps);
      yield row.value;
      nextRow = rows.next();
    }
  } finally {
    leave();
    await rows.return?.(undefined);
  }
}

/** Remembers each session's last finished step; forgets them all after very many sessions. */
function noteEnd(event: CommittedEvent, lastSteps: Map<string, number>): void {
  const step = event.kind === "step" && event.step.status === "ok" ? event.step : null;
  const message = event.kind === "message" ? event.message : null;
  const { session_id, iteration } = step ?? message ?? { session_id: null, iteration: null };
  if (session_id === null || iteration === null) return;
  if (lastSteps.size >= MOST_SESSIONS) lastSteps.clear();
  lastSteps.set(session_id, iteration);
}

function* drain(deltas: DeltaBuffer, lastSteps: ReadonlyMap<string, number>): Generator<RuntimeEvent> {
  for (let delta = deltas.shift(); delta; delta = deltas.shift())
    if (delta.iteration > (lastSteps.get(delta.session_id) ?? -1)) yield { kind: "delta", delta };
}

const concerns = (topic: Topic, { session_id, conversation_id }: StepDelta): boolean =>
  "session_id" in topic
    ? topic.session_id === session_id
    : "conversation_id" in topic
      ? topic.conversation_id === conversation_id
      : true;
