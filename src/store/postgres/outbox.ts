import type { StepDelta } from "../../domain/event.ts";

/** What processes tell each other. Ids only: rows are read by those who care. */
export type Notification =
  /** A process joined or begins to follow: there is somebody to notify. */
  | { kind: "hello"; follows: boolean }
  /** Sessions with actions to claim. */
  | { kind: "work"; session_ids: string[] }
  /** Sessions may be free to be claimed. */
  | { kind: "free" }
  /** Rows of a session after a position, and those of its actions that changed. */
  | SessionNotification
  /** Actions of a session changed, and nothing else of it. */
  | ActionsNotification
  | { kind: "messages"; conversation_id: string; first_number: number }
  /** Text of a running step; `last_seq` is the number of the last one that was joined into it. */
  | DeltaNotification
  | { kind: "unlocked"; name: string };
type SessionNotification = {
  kind: "session";
  session_id: string;
  iteration: number;
  error_rows: number;
  actions: string[];
};
type ActionsNotification = { kind: "actions"; session_id: string; actions: string[] };
export type DeltaNotification = { kind: "delta"; delta: StepDelta; last_seq: number };

/** Characters of step text that may wait, of all steps together. */
const MOST_TEXT = 256 * 1024;
/** What a delta costs beside its text, in characters: its ids. */
const DELTA_COST = 200;
/** Steps that are remembered as told in part. */
const MOST_TRUNCATED = 1000;

/**
 * Notifications that wait to be sent. They are bounded whatever happens and however slow the server is.
 *
 * OUTBOX-1  Notifications of rows are never dropped, they are merged: a session, a conversation or a name waits once.
 * OUTBOX-2  Text of a step is merged as well, and where too much waits the rest of the step's text is dropped, after a delta
 *           that is marked `truncated`. So what is sent of a step is always the beginning of its text.
 */
export class Outbox {
  #rows = new Map<string, Waiting>();
  #work = new Set<string>();
  #deltas: DeltaNotification[] = [];
  #text = 0;
  /** By session: the iteration of the step of which no more is told. */
  readonly #truncated = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#rows.size + this.#work.size + this.#deltas.length === 0;
  }

  /** OUTBOX-1. */
  add(notification: Exclude<Notification, DeltaNotification>): void {
    if (notification.kind === "work") for (const id of notification.session_ids) this.#work.add(id);
    else {
      const next =
        notification.kind === "session" || notification.kind === "actions"
          ? { ...notification, actions: new Set(notification.actions) }
          : notification;
      const key = keyOf(next);
      const waiting = this.#rows.get(key);
      this.#rows.set(key, waiting ? merged(waiting, next) : next);
    }
  }

  /** OUTBOX-2. */
  addDelta(delta: StepDelta): void {
    const { session_id, iteration, event_seq } = delta;
    if (event_seq === 0) this.#truncated.delete(session_id); // It starts over.
    if (this.#truncated.get(session_id) === iteration) return;
    const isFull = this.#text + delta.text.length + DELTA_COST > MOST_TEXT;
    const last = this.#deltas.at(-1);
    if (!isFull && last && goesOn(last, delta)) {
      last.delta.text += delta.text;
      last.last_seq = event_seq;
      this.#text += delta.text.length;
      return;
    }
    this.#text += DELTA_COST + (isFull ? 0 : delta.text.length);
    const { tool: _, ...rest } = delta;
    const sent: StepDelta = isFull ? { ...rest, text: "", truncated: true } : { ...delta };
    this.#deltas.push({ kind: "delta", delta: sent, last_seq: event_seq });
    if (!isFull) return;
    if (this.#truncated.size >= MOST_TRUNCATED) this.#truncated.clear();
    this.#truncated.set(session_id, iteration);
  }

  /** All that waits, rows last: text is sent before the step that it belongs to. */
  take(): Notification[] {
    const rows = [...this.#rows.values()].map((waiting) =>
      waiting.kind === "session" || waiting.kind === "actions"
        ? { ...waiting, actions: [...waiting.actions] }
        : waiting,
    );
    const work: Notification[] = this.#work.size > 0 ? [{ kind: "work", session_ids: [...this.#work] }] : [];
    const all = [...this.#deltas, ...rows, ...work];
    this.clear();
    return all;
  }

  clear(): void {
    this.#rows = new Map();
    this.#work = new Set();
    this.#deltas = [];
    this.#text = 0;
  }
}

type WaitingSession = Omit<SessionNotification, "actions"> & { actions: Set<string> };
type WaitingActions = Omit<ActionsNotification, "actions"> & { actions: Set<string> };
type Waiting =
  | Exclude<Notification, DeltaNotification | SessionNotification | ActionsNotification | { kind: "work" }>
  | WaitingSession
  | WaitingActions;

/** What is of the same key is merged. */
function keyOf(waiting: Waiting): string {
  switch (waiting.kind) {
    case "session":
    case "actions":
      return `session ${waiting.session_id}`;
    case "messages":
      return `messages ${waiting.conversation_id}`;
    case "unlocked":
      return `unlocked ${waiting.name}`;
    case "hello":
    case "free":
      return waiting.kind;
  }
  return waiting satisfies never;
}

function merged(one: Waiting, other: Waiting): Waiting {
  if (one.kind === "hello" && other.kind === "hello") return { kind: "hello", follows: one.follows || other.follows };
  if (one.kind === "messages" && other.kind === "messages")
    return { ...one, first_number: Math.min(one.first_number, other.first_number) };
  if (isOfSession(one) && isOfSession(other)) {
    for (const id of other.actions) one.actions.add(id);
    return { ...firstOf(one, other), actions: one.actions };
  }
  return other;
}

const isOfSession = (waiting: Waiting): waiting is WaitingSession | WaitingActions =>
  waiting.kind === "session" || waiting.kind === "actions";

/** The one that begins earlier; one of actions alone tells of no other rows. */
function firstOf(
  one: WaitingSession | WaitingActions,
  other: WaitingSession | WaitingActions,
): WaitingSession | WaitingActions {
  if (one.kind === "actions") return other;
  if (other.kind === "actions") return one;
  const order = one.iteration - other.iteration || one.error_rows - other.error_rows;
  return order <= 0 ? one : other;
}

const goesOn = ({ delta: last, last_seq }: DeltaNotification, next: StepDelta): boolean =>
  last.session_id === next.session_id &&
  last.iteration === next.iteration &&
  last_seq + 1 === next.event_seq &&
  last.tool === undefined &&
  next.tool === undefined;
