import { setTimeout as wait } from "node:timers/promises";
import type { Action } from "../../domain/action.ts";
import type { Message } from "../../domain/conversation.ts";
import type { Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import { ALL_CHANNEL, type CommitFeed, conversationChannel, sessionChannel } from "../commit-feed.ts";
import type { Position } from "./owned-sessions.ts";
import type { RowReads } from "./row-reads.ts";
import type { SessionReads } from "./session-reads.ts";
import type { StepReads } from "./step-reads.ts";

type Reads = { sessions: SessionReads; steps: StepReads; rows: RowReads };
export type PlacedStep = { step: Step; error_number: number | null };
export type SessionNews = {
  session: Session;
  before: Position;
  after: Position;
  steps: PlacedStep[];
};

const PAGE = 200;
/** A read that fails is tried again for a while, so many milliseconds later. */
const READ_AGAIN_MS = 200;
const MOST_FAILURES = 25;
/** Sessions and conversations whose place is remembered where nobody listens to them in particular. */
const MOST_PLACES = 20_000;

/**
 * Hands what was committed, here or elsewhere, to those who follow it here.
 *
 * R1  The steps of a session and the messages of a conversation are handed on in the order of their commits and without a
 *     gap: what does not continue where the last one ended is read from the database from there on.
 * R2  Of rows that change the newest version is handed on last: a row that was read is dropped where a newer one was
 *     committed here meanwhile.
 */
export class Relay {
  readonly #reads: Reads;
  readonly #feed: CommitFeed;
  /** Up to where rows were handed on. */
  readonly #positions = new Map<string, Position>();
  readonly #numbers = new Map<string, number>();
  /** Where sessions and conversations stood when somebody began to follow them. */
  readonly #firstPositions = new Map<string, Position>();
  readonly #firstNumbers = new Map<string, number>();
  readonly #changes = new Map<string, string>();
  /** Counts what was handed on of a session's own commits here, for R2. */
  readonly #versions = new Map<string, number>();
  readonly #reading = new Map<string, { again: boolean; actions: Set<string> }>();

  constructor(reads: Reads, feed: CommitFeed) {
    this.#reads = reads;
    this.#feed = feed;
  }

  /** A commit of this process. */
  committed(
    sessions: SessionNews[],
    messages: { message: Message; number: number | undefined }[],
    actions: Action[],
  ): void {
    if (this.#feed.channels.size === 0) return this.#forgetAll();
    for (const { step } of sessions.flatMap((news) => this.#inTurn(news))) this.#feed.publish({ kind: "step", step });
    for (const { message, number } of messages) this.#message(message, number);
    for (const action of actions) {
      this.#touch(action.session_id);
      this.#feed.publish({ kind: "action", action });
    }
    for (const { session } of sessions) this.#feed.publish({ kind: "session", session });
  }

  /** A commit of another process, to a session that somebody here may follow. */
  sessionMoved(session_id: string, before: Position, actions: string[]): void {
    if (!this.#hears(sessionChannel(session_id))) {
      this.#positions.delete(session_id);
      return;
    }
    // An iteration of -2 tells that only actions changed.
    if (before.iteration >= -1 && !this.#positions.has(session_id))
      this.#remember(this.#positions, session_id, this.#stoodAt(session_id, before));
    this.#readSession(session_id, actions);
  }

  messagesCame(conversation_id: string, first_number: number): void {
    if (!this.#hears(conversationChannel(conversation_id))) {
      this.#numbers.delete(conversation_id);
      return;
    }
    this.#startAt(conversation_id, first_number);
    this.#readMessages(conversation_id);
  }

  /** Notes where a session or a conversation stands when somebody begins to follow it, for when news is lost later. */
  async begin(channel: string): Promise<void> {
    if (this.#feed.channels.has(channel)) return;
    const [session_id, conversation_id] = [nameIn("session", channel), nameIn("conversation", channel)];
    if (session_id !== undefined) {
      this.#positions.delete(session_id);
      const [found] = await this.#reads.sessions.positions([session_id]);
      if (found) this.#remember(this.#firstPositions, session_id, found);
    }
    if (conversation_id !== undefined) {
      this.#numbers.delete(conversation_id);
      const last = (await this.#reads.rows.lastNumbers([conversation_id])).get(conversation_id) ?? 0;
      this.#remember(this.#firstNumbers, conversation_id, last + 1);
    }
  }

  /** News may have been lost: everyone reads on from where they stand. */
  async catchUp(since: string): Promise<void> {
    this.#feed.gap();
    const moved = this.#feed.channels.has(ALL_CHANNEL) ? await this.#reads.sessions.movedSince(since) : [];
    for (const id of moved) if (this.#positions.has(id)) this.#readSession(id, []);
    await this.lookThrough();
  }

  /** The backstop: looks whether what is followed here moved without news of it. */
  async lookThrough(): Promise<void> {
    const heard = [...this.#feed.channels.keys()];
    const sessions = heard.flatMap((channel) => nameIn("session", channel) ?? []);
    if (sessions.length > 0) {
      for (const found of await this.#reads.sessions.positions(sessions)) {
        const { session_id, updated_at } = found;
        const known = this.#positions.get(session_id) ?? this.#firstPositions.get(session_id) ?? found;
        const hasChanged = (this.#changes.get(session_id) ?? updated_at) !== updated_at;
        this.#remember(this.#changes, session_id, updated_at);
        if (!isBehind(known, found) && !hasChanged) continue;
        if (!this.#positions.has(session_id)) this.#remember(this.#positions, session_id, known);
        this.#readSession(session_id, []);
      }
    }
    const talks = heard.flatMap((channel) => nameIn("conversation", channel) ?? []);
    if (talks.length > 0) {
      for (const [id, last] of await this.#reads.rows.lastNumbers(talks)) {
        const next = this.#numbers.get(id) ?? this.#firstNumbers.get(id);
        if (next === undefined || next > last) continue;
        this.#remember(this.#numbers, id, next);
        this.#readMessages(id);
      }
    }
  }

  /** R1. Steps that may be handed on at once; where something is missing before them they are read instead. */
  #inTurn({ session, before, after, steps }: SessionNews): PlacedStep[] {
    const { session_id } = session;
    if (!this.#hears(sessionChannel(session_id))) {
      this.#positions.delete(session_id);
      return [];
    }
    this.#touch(session_id);
    const known = this.#positions.get(session_id) ?? this.#stoodAt(session_id, before);
    if (isBehind(known, before)) {
      this.#remember(this.#positions, session_id, known);
      this.#readSession(session_id, []);
      return [];
    }
    if (isBehind(known, after)) this.#remember(this.#positions, session_id, after);
    return steps.filter((placed) => isAfter(placed, known));
  }

  #message(message: Message, number: number | undefined): void {
    const { conversation_id } = message;
    if (!this.#hears(conversationChannel(conversation_id))) {
      this.#numbers.delete(conversation_id);
      return;
    }
    const next = number === undefined ? undefined : this.#startAt(conversation_id, number);
    if (number === undefined || next === undefined || next < number) return this.#readMessages(conversation_id);
    if (next > number) return;
    this.#remember(this.#numbers, conversation_id, number + 1);
    this.#feed.publish({ kind: "message", message }, number);
  }

  /** R1. The same for a session. */
  #stoodAt(session_id: string, { iteration, error_rows }: Position): Position {
    const first = this.#firstPositions.get(session_id);
    return first && isBehind(first, { iteration, error_rows }) ? first : { iteration, error_rows };
  }

  /** R1. The first news heard may not be the first there was: it goes on from where the conversation stood. */
  #startAt(conversation_id: string, heard: number): number {
    const next =
      this.#numbers.get(conversation_id) ?? Math.min(heard, this.#firstNumbers.get(conversation_id) ?? heard);
    this.#remember(this.#numbers, conversation_id, next);
    return next;
  }

  #readSession(session_id: string, actions: string[]): void {
    this.#readAgain(`session ${session_id}`, actions, async (wanted) => {
      const version = this.#versions.get(session_id);
      // The session first: it must not be ahead of its steps.
      const [session, changed] = await Promise.all([
        this.#reads.sessions.get(session_id),
        wanted.length > 0 ? this.#reads.rows.someActions(wanted) : [],
      ]);
      const known = this.#positions.get(session_id);
      const steps = known ? await this.#reads.steps.after(session_id, known, PAGE) : [];
      for (const step of steps) this.#publishRead(step);
      if (this.#versions.get(session_id) !== version) return "again"; // R2
      if (steps.length === PAGE) return "again";
      for (const action of changed) this.#feed.publish({ kind: "action", action });
      if (session) this.#feed.publish({ kind: "session", session });
      return "done";
    });
  }

  #publishRead(step: Step): void {
    const { session_id, iteration, status } = step;
    const known = this.#positions.get(session_id) ?? {
      iteration: -1,
      error_rows: 0,
    };
    if (iteration <= known.iteration) return;
    const error_rows = known.error_rows + (status === "error" ? 1 : 0);
    this.#remember(this.#positions, session_id, {
      iteration: status === "ok" ? iteration : known.iteration,
      error_rows,
    });
    this.#feed.publish({ kind: "step", step });
  }

  #readMessages(conversation_id: string): void {
    this.#readAgain(`conversation ${conversation_id}`, [], async () => {
      const from = this.#numbers.get(conversation_id);
      if (from === undefined) return "done";
      const found = await this.#reads.rows.messagesFrom(conversation_id, from, PAGE);
      for (const { message, number } of found) {
        if (number < (this.#numbers.get(conversation_id) ?? 0)) continue;
        this.#remember(this.#numbers, conversation_id, number + 1);
        this.#feed.publish({ kind: "message", message }, number);
      }
      return found.length < PAGE ? "done" : "again";
    });
  }

  /** One read at a time for each key; what is asked for meanwhile makes it read again. */
  #readAgain(key: string, actions: string[], read: (actions: string[]) => Promise<"done" | "again">): void {
    const known = this.#reading.get(key);
    if (known) {
      known.again = true;
      for (const id of actions) known.actions.add(id);
      return;
    }
    const state = { again: true, actions: new Set(actions) };
    this.#reading.set(key, state);
    let failures = 0;
    void (async () => {
      while (state.again) {
        state.again = false;
        const wanted = [...state.actions];
        const outcome = await read(wanted).catch(() => "failed" as const);
        // Where the server stays out of reach everything is read on from where it stands once it is back.
        if (outcome === "failed" && ++failures >= MOST_FAILURES) return;
        if (outcome === "failed") await wait(READ_AGAIN_MS, undefined, { ref: false });
        if (outcome !== "done") state.again = true;
        else for (const id of wanted) state.actions.delete(id);
      }
    })().finally(() => this.#reading.delete(key));
  }

  #touch(session_id: string): void {
    this.#remember(this.#versions, session_id, (this.#versions.get(session_id) ?? 0) + 1);
  }

  #hears(channel: string): boolean {
    return this.#feed.channels.has(channel) || this.#feed.channels.has(ALL_CHANNEL);
  }

  #forgetAll(): void {
    if (
      this.#positions.size +
        this.#numbers.size +
        this.#firstPositions.size +
        this.#firstNumbers.size +
        this.#versions.size ===
      0
    )
      return;
    for (const map of [this.#positions, this.#numbers, this.#firstPositions, this.#firstNumbers, this.#versions])
      map.clear();
    this.#changes.clear();
  }

  #remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
    map.delete(key);
    map.set(key, value);
    if (map.size > MOST_PLACES) map.delete(map.keys().next().value as string);
  }
}

const nameIn = (kind: "session" | "conversation", channel: string): string | undefined =>
  channel.startsWith(`${kind}:`) ? channel.slice(kind.length + 1) : undefined;
const isBehind = (one: Position, other: Position): boolean =>
  one.iteration < other.iteration || one.error_rows < other.error_rows;
const isAfter = ({ step, error_number }: PlacedStep, known: Position): boolean =>
  step.iteration > known.iteration && (error_number === null || error_number >= known.error_rows);
