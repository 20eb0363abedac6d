import type { StepDelta } from "../../domain/event.ts";

/** News between processes. Ids only: rows are read by those who care. */
export type News =
  /** A process joined or begins to follow: there is somebody to tell news to. */
  | { kind: "hello"; follows: boolean }
  /** Sessions with actions to claim. */
  | { kind: "work"; session_ids: string[] }
  /** Sessions may be free to be claimed. */
  | { kind: "free" }
  /** Rows of a session after a position; `actions` are those that changed. */
  | SessionNews
  | { kind: "messages"; conversation_id: string; first_number: number }
  /** Text of a running step; `last_seq` is the number of the last one that was joined into it. */
  | DeltaNews
  | { kind: "unlocked"; name: string };
type SessionNews = { kind: "session"; session_id: string; iteration: number; error_rows: number; actions: string[] };
export type DeltaNews = { kind: "delta"; delta: StepDelta; last_seq: number };

/** Characters of step text that may wait, of all steps together. */
const MOST_TEXT = 256 * 1024;
/** What a delta costs beside its text, in characters: its ids. */
const DELTA_COST = 200;
/** Steps that are remembered as told in part. */
const MOST_TRUNCATED = 1000;
/**
 * News that waits to be told. It is bounded whatever happens and however slow the server is.
 *
 * N1  News of rows is never dropped, it is joined: a session, a conversation or a name waits once.
 * N2  Text of a step is joined as well, and where too much waits the rest of the step's text is dropped, after a delta that is
 *     marked `truncated`. So what is told of a step is always the beginning of its text.
 */
export class Outbox {
  #news = new Map<string, Joinable>();
  #work = new Set<string>();
  #deltas: DeltaNews[] = [];
  #text = 0;
  /** By session: the iteration of the step of which no more is told. */
  readonly #truncated = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#news.size + this.#work.size + this.#deltas.length === 0;
  }

  /** N1. */
  add(news: Exclude<News, DeltaNews>): void {
    if (news.kind === "work") for (const id of news.session_ids) this.#work.add(id);
    else {
      const next = news.kind === "session" ? { ...news, actions: new Set(news.actions) } : news;
      const key = keyOf(next);
      const waiting = this.#news.get(key);
      this.#news.set(key, waiting ? joined(waiting, next) : next);
    }
  }

  /** N2. */
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
    const told: StepDelta = isFull ? { ...rest, text: "", truncated: true } : { ...delta };
    this.#deltas.push({ kind: "delta", delta: told, last_seq: event_seq });
    if (!isFull) return;
    if (this.#truncated.size >= MOST_TRUNCATED) this.#truncated.clear();
    this.#truncated.set(session_id, iteration);
  }

  /** All that waits, rows last: text is told before the step that it belongs to. */
  take(): News[] {
    const rows = [...this.#news.values()].map((news) =>
      news.kind === "session" ? { ...news, actions: [...news.actions] } : news,
    );
    const work: News[] = this.#work.size > 0 ? [{ kind: "work", session_ids: [...this.#work] }] : [];
    const all = [...this.#deltas, ...rows, ...work];
    this.clear();
    return all;
  }

  clear(): void {
    this.#news = new Map();
    this.#work = new Set();
    this.#deltas = [];
    this.#text = 0;
  }
}

type WaitingSession = Omit<SessionNews, "actions"> & { actions: Set<string> };
type Joinable = Exclude<News, DeltaNews | SessionNews | { kind: "work" }> | WaitingSession;

/** What is of the same key is joined. */
function keyOf(news: Joinable): string {
  switch (news.kind) {
    case "session":
      return `session ${news.session_id}`;
    case "messages":
      return `messages ${news.conversation_id}`;
    case "unlocked":
      return `unlocked ${news.name}`;
    case "hello":
    case "free":
      return news.kind;
  }
  return news satisfies never;
}

function joined(one: Joinable, other: Joinable): Joinable {
  if (one.kind === "hello" && other.kind === "hello") return { kind: "hello", follows: one.follows || other.follows };
  if (one.kind === "messages" && other.kind === "messages")
    return { ...one, first_number: Math.min(one.first_number, other.first_number) };
  if (one.kind === "session" && other.kind === "session") {
    for (const id of other.actions) one.actions.add(id);
    return { ...firstOf(one, other), actions: one.actions };
  }
  return other;
}

/** The one that begins earlier; an iteration of -2 tells of no rows at all. */
function firstOf(one: WaitingSession, other: WaitingSession): WaitingSession {
  if (one.iteration === -2) return other;
  if (other.iteration === -2) return one;
  const order = one.iteration - other.iteration || one.error_rows - other.error_rows;
  return order <= 0 ? one : other;
}

const goesOn = ({ delta: last, last_seq }: DeltaNews, next: StepDelta): boolean =>
  last.session_id === next.session_id &&
  last.iteration === next.iteration &&
  last_seq + 1 === next.event_seq &&
  last.tool === undefined &&
  next.tool === undefined;
