import type { CommittedEvent, StepDelta } from "../domain/event.ts";
import type { Session } from "../domain/session.ts";
import type { ReaderBudget } from "../store/follow.ts";
import type { Store, Topic } from "../store/store.ts";

export type RuntimeEvent = CommittedEvent | { kind: "delta"; delta: StepDelta };

/** Deltas that wait for a slow reader, and their characters; older ones are dropped first, since the step's own text follows. */
const MOST_DELTAS = 1000;
const MOST_DELTA_TEXT = 1024 * 1024;
/** Sessions whose last step a reader's deltas are held against. */
const MOST_SESSIONS = 1000;

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
    store.onDelta?.((delta) => this.#tell(delta));
  }

  publishDelta(session: Session, delta: Omit<StepDelta, "session_id" | "conversation_id">): void {
    const { session_id, conversation_id } = session;
    const whole = { session_id, conversation_id, ...delta };
    this.#tell(whole);
    this.#store.publishDelta?.(whole);
  }

  #tell(delta: StepDelta): void {
    for (const { topic, listener } of this.#listeners) if (concerns(topic, delta)) listener(delta);
  }

  /** Listens from the call on, until the signal aborts or the reader leaves. What waits for the reader counts towards its budget. */
  follow(topic: Topic, signal: AbortSignal, budget?: ReaderBudget): AsyncGenerator<RuntimeEvent> {
    const deltas = new WaitingDeltas();
    const news = { told: () => {} };
    const entry = {
      topic,
      listener(delta: StepDelta) {
        deltas.push(delta);
        news.told();
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
    return merged(rows, deltas, news, () => {
      signal.removeEventListener("abort", leave);
      leave();
    });
  }
}

class WaitingDeltas {
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
 * Deltas first: they were told before the step that they belong to was committed. Where rows and deltas come from another process,
 * the step may come first all the same; then its text is known, and its deltas are left out.
 */
async function* merged(
  rows: AsyncIterator<CommittedEvent>,
  deltas: WaitingDeltas,
  news: { told: () => void },
  leave: () => void,
): AsyncGenerator<RuntimeEvent> {
  const over = new Map<string, number>();
  try {
    let nextRow = rows.next();
    for (;;) {
      const delta = new Promise<"delta">((resolve) => {
        news.told = () => resolve("delta");
      });
      yield* taken(deltas, over);
      const row = await Promise.race([nextRow, delta]);
      if (row === "delta") continue;
      if (row.done) return;
      yield* taken(deltas, over);
      noteEnd(row.value, over);
      yield row.value;
      nextRow = rows.next();
    }
  } finally {
    leave();
    await rows.return?.(undefined);
  }
}

/** Keeps the last step of each session that came to its end; where there are very many sessions it begins anew. */
function noteEnd(event: CommittedEvent, over: Map<string, number>): void {
  const ended = event.kind === "step" && event.step.status === "ok" ? event.step : null;
  const said = event.kind === "message" ? event.message : null;
  const { session_id, iteration } = ended ?? said ?? { session_id: null, iteration: null };
  if (session_id === null || iteration === null) return;
  if (over.size >= MOST_SESSIONS) over.clear();
  over.set(session_id, iteration);
}

function* taken(deltas: WaitingDeltas, over: ReadonlyMap<string, number>): Generator<RuntimeEvent> {
  for (let delta = deltas.shift(); delta; delta = deltas.shift())
    if (delta.iteration > (over.get(delta.session_id) ?? -1)) yield { kind: "delta", delta };
}

const concerns = (topic: Topic, { session_id, conversation_id }: StepDelta): boolean =>
  "session_id" in topic
    ? topic.session_id === session_id
    : "conversation_id" in topic
      ? topic.conversation_id === conversation_id
      : true;
