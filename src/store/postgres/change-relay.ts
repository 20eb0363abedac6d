import { setTimeout as wait } from "node:timers/promises";
import type { Action } from "../../domain/action.ts";
import type { Message } from "../../domain/conversation.ts";
import type { Step } from "../../domain/step.ts";
import { ALL_CHANNEL, type CommitFeed, conversationChannel, sessionChannel } from "../follow.ts";
import type { PlannedStep, Position, SessionPlan } from "../owned-sessions.ts";
import type { PostgresReads } from "./postgres-reads.ts";

type CommittedSession = Pick<SessionPlan, "session" | "before" | "after" | "steps">;
type NumberedMessage = { message: Message; number: number | undefined };

const PAGE = 200;
/** Delay between attempts at a read that fails, in milliseconds, and how many there are. */
const READ_AGAIN_MS = 200;
const MOST_FAILURES = 25;
/** Limit of remembered sessions, and of conversations: a follower of everything hears of many. */
const MOST_FOLLOWED = 20_000;

/** How far the rows of a session or a conversation have been published. */
type Progress<Place> =
  /** Nothing was published, and the place at which following began is not known. */
  | { kind: "unknown" }
  /** Nothing was published since following began at this place. */
  | { kind: "began"; at: Place }
  /** Everything before this place was published. */
  | { kind: "reached"; at: Place };

/** Whether its rows are being read. A request that comes meanwhile makes it read once more. */
type Reading = { kind: "idle" } | { kind: "reading"; again: boolean; action_ids: Set<string> };

type Followed<Place> = {
  progress: Progress<Place>;
  reading: Reading;
  /** Counts this process's own commits (RELAY-2). */
  version: number;
  /** Of a session: its `updated_at` when it was last checked. */
  updated_at: string | null;
};

/**
 * Publishes what was committed, here or in another process, to the followers in this process.
 *
 * Each session and each conversation that somebody follows has a state; it is dropped, with any read under way, when the last
 * follower leaves. The state has two parts:
 * - progress: `unknown` at first, `began` once the place where following started has been read, `reached` from the first commit or
 *   notification on. It then advances with every row published.
 * - reading: `idle`, or `reading` after a notification and whenever rows are missing, until all of them have been read.
 * A commit of this process that continues where progress stands is published at once, without a read.
 *
 * RELAY-1  Steps of a session and messages of a conversation are published in the order of their commits and without gaps: if a row
 *          does not continue where the last one ended, the rows in between are read from the database.
 * RELAY-2  Of rows that change, the newest version is published last: a row that was read is discarded if this process committed a
 *          newer one meanwhile.
 */
export class ChangeRelay {
  readonly #reads: PostgresReads;
  readonly #feed: CommitFeed;
  readonly #sessions = new FollowedStates<Position>();
  /** By conversation; the place is the number of the next message. */
  readonly #conversations = new FollowedStates<number>();

  constructor(reads: PostgresReads, feed: CommitFeed) {
    this.#reads = reads;
    this.#feed = feed;
  }

  /** A commit of this process. */
  committed(sessions: CommittedSession[], messages: NumberedMessage[], actions: Action[]): void {
    if (this.#feed.channels.size === 0) {
      this.#sessions.clear();
      this.#conversations.clear();
      return;
    }
    for (const { step } of sessions.flatMap((committed) => this.#continuing(committed)))
      this.#feed.publish({ kind: "step", step });
    for (const { message, number } of messages) this.#publishMessage(message, number);
    for (const action of actions) {
      const followed = this.#sessions.get(action.session_id);
      if (followed) followed.version += 1;
      this.#feed.publish({ kind: "action", action });
    }
    for (const { session } of sessions) this.#feed.publish({ kind: "session", session });
  }

  /** Another process committed to a session that stood at `before`; null if only actions changed. */
  sessionChanged(session_id: string, before: Position | null, action_ids: string[]): void {
    const followed = this.#followedSession(session_id);
    if (!followed) return;
    if (before && followed.progress.kind !== "reached")
      followed.progress = { kind: "reached", at: earliest(followed.progress, before) };
    this.#readSession(session_id, followed, action_ids);
  }

  /** Another process added messages to a conversation, from this number on. */
  messagesAdded(conversation_id: string, first_number: number): void {
    const followed = this.#followedConversation(conversation_id);
    if (!followed) return;
    this.#nextNumber(followed, first_number);
    this.#readMessages(conversation_id, followed);
  }

  /** Notes where a session or a conversation stands when following begins, in case a notification is lost later. */
  async begin(channel: string): Promise<void> {
    if (this.#feed.channels.has(channel)) return;
    const [session_id, conversation_id] = [idIn("session", channel), idIn("conversation", channel)];
    // State from a time when nobody followed it is outdated; a follower of everything counts as one.
    const isHeard = this.#isHeard(channel);
    if (session_id !== undefined) {
      if (!isHeard) this.#sessions.delete(session_id);
      const [position] = await this.#reads.sessionPositions([session_id]);
      const followed = this.#followedSession(session_id);
      if (position && followed?.progress.kind === "unknown") followed.progress = { kind: "began", at: position };
    }
    if (conversation_id !== undefined) {
      if (!isHeard) this.#conversations.delete(conversation_id);
      const last = (await this.#reads.lastMessageNumbers([conversation_id])).get(conversation_id) ?? 0;
      const followed = this.#followedConversation(conversation_id);
      if (followed?.progress.kind === "unknown") followed.progress = { kind: "began", at: last + 1 };
    }
  }

  /** Notifications may have been lost: every follower reads on from where it stands. */
  async catchUp(since: string): Promise<void> {
    this.#feed.gap();
    const moved = this.#feed.channels.has(ALL_CHANNEL) ? await this.#reads.sessionsMovedSince(since) : [];
    for (const id of moved) {
      const followed = this.#sessions.get(id);
      if (followed?.progress.kind === "reached") this.#readSession(id, followed, []);
    }
    await this.lookThrough();
  }

  /** In case a notification was lost: checks whether what is followed here has advanced. */
  async lookThrough(): Promise<void> {
    const channels = [...this.#feed.channels.keys()];
    const session_ids = channels.flatMap((channel) => idIn("session", channel) ?? []);
    if (session_ids.length > 0)
      for (const current of await this.#reads.sessionPositions(session_ids)) this.#lookAtSession(current);
    const conversation_ids = channels.flatMap((channel) => idIn("conversation", channel) ?? []);
    if (conversation_ids.length === 0) return;
    for (const [id, last] of await this.#reads.lastMessageNumbers(conversation_ids)) {
      const followed = this.#followedConversation(id);
      if (!followed || followed.progress.kind === "unknown" || followed.progress.at > last) continue;
      followed.progress = { kind: "reached", at: followed.progress.at };
      this.#readMessages(id, followed);
    }
  }

  #lookAtSession(current: Position & { session_id: string; updated_at: string }): void {
    const followed = this.#followedSession(current.session_id);
    if (!followed) return;
    const hasChanged = followed.updated_at !== null && followed.updated_at !== current.updated_at;
    followed.updated_at = current.updated_at;
    const at = placeOf(followed.progress, current);
    if (!isBehind(at, current) && !hasChanged) return;
    followed.progress = { kind: "reached", at };
    this.#readSession(current.session_id, followed, []);
  }

  /** RELAY-1. Returns the steps that can be published at once; if rows before them are missing, starts a read instead. */
  #continuing({ session, before, after, steps }: CommittedSession): PlannedStep[] {
    const followed = this.#followedSession(session.session_id);
    if (!followed) return [];
    followed.version += 1;
    const at = followed.progress.kind === "reached" ? followed.progress.at : earliest(followed.progress, before);
    if (isBehind(at, before)) {
      followed.progress = { kind: "reached", at };
      this.#readSession(session.session_id, followed, []);
      return [];
    }
    if (isBehind(at, after)) followed.progress = { kind: "reached", at: after };
    return steps.filter((placed) => isAfter(placed, at));
  }

  #publishMessage(message: Message, number: number | undefined): void {
    const { conversation_id } = message;
    const followed = this.#followedConversation(conversation_id);
    if (!followed) return;
    const next = number === undefined ? undefined : this.#nextNumber(followed, number);
    if (number === undefined || next === undefined || next < number)
      return this.#readMessages(conversation_id, followed);
    if (next > number) return;
    followed.progress = { kind: "reached", at: number + 1 };
    this.#feed.publish({ kind: "message", message }, number);
  }

  /** RELAY-1. Earlier messages may have been missed: goes on from where the conversation stood when following began. */
  #nextNumber(followed: Followed<number>, heard: number): number {
    const { progress } = followed;
    const at = progress.kind === "reached" ? progress.at : Math.min(heard, placeOf(progress, heard));
    followed.progress = { kind: "reached", at };
    return at;
  }

  #readSession(session_id: string, followed: Followed<Position>, action_ids: string[]): void {
    const isDropped = (): boolean => this.#sessions.get(session_id) !== followed;
    this.#read(followed, action_ids, async (ids) => {
      const { version } = followed;
      // The session is read before its steps, so that it is never ahead of them.
      const [session, actions] = await Promise.all([
        this.#reads.getSession(session_id),
        ids.length > 0 ? this.#reads.getActions(ids) : [],
      ]);
      const { progress } = followed;
      const steps = progress.kind === "reached" ? await this.#reads.stepsAfter(session_id, progress.at, PAGE) : [];
      if (isDropped()) return "dropped";
      for (const step of steps) this.#publishStep(followed, step);
      if (followed.version !== version) return "again"; // RELAY-2
      if (steps.length === PAGE) return "again";
      for (const action of actions) this.#feed.publish({ kind: "action", action });
      if (session) this.#feed.publish({ kind: "session", session });
      return "done";
    });
  }

  /** Publishes a step that was read, unless it was published meanwhile. */
  #publishStep(followed: Followed<Position>, step: Step): void {
    const at = followed.progress.kind === "reached" ? followed.progress.at : { iteration: -1, error_rows: 0 };
    if (step.iteration <= at.iteration) return;
    const isError = step.status === "error";
    followed.progress = {
      kind: "reached",
      at: {
        iteration: isError ? at.iteration : step.iteration,
        error_rows: at.error_rows + (isError ? 1 : 0),
      },
    };
    this.#feed.publish({ kind: "step", step });
  }

  #readMessages(conversation_id: string, followed: Followed<number>): void {
    const isDropped = (): boolean => this.#conversations.get(conversation_id) !== followed;
    this.#read(followed, [], async () => {
      if (followed.progress.kind === "unknown") return "done";
      const messages = await this.#reads.messagesFrom(conversation_id, followed.progress.at, PAGE);
      if (isDropped()) return "dropped";
      for (const { message, number } of messages) {
        // It may have been published meanwhile.
        if (number < placeOf(followed.progress, number)) continue;
        followed.progress = { kind: "reached", at: number + 1 };
        this.#feed.publish({ kind: "message", message }, number);
      }
      return messages.length < PAGE ? "done" : "again";
    });
  }

  /** One read at a time of each session and conversation. */
  #read<Place>(
    followed: Followed<Place>,
    action_ids: string[],
    read: (action_ids: string[]) => Promise<"done" | "again" | "dropped">,
  ): void {
    if (followed.reading.kind === "reading") {
      followed.reading.again = true;
      for (const id of action_ids) followed.reading.action_ids.add(id);
      return;
    }
    const reading = { kind: "reading" as const, again: true, action_ids: new Set(action_ids) };
    followed.reading = reading;
    let failures = 0;
    void (async () => {
      while (reading.again) {
        reading.again = false;
        const ids = [...reading.action_ids];
        const outcome = await read(ids).catch(() => "failed" as const);
        // If the server stays out of reach, everything is read from where it stands once it is back.
        if (outcome === "dropped" || (outcome === "failed" && ++failures >= MOST_FAILURES)) break;
        if (outcome === "failed") await wait(READ_AGAIN_MS, undefined, { ref: false });
        if (outcome !== "done") reading.again = true;
        else for (const id of ids) reading.action_ids.delete(id);
      }
      followed.reading = { kind: "idle" };
    })();
  }

  /** The state of a session; null if nobody follows it. */
  #followedSession(session_id: string): Followed<Position> | null {
    return this.#isHeard(sessionChannel(session_id))
      ? this.#sessions.touch(session_id)
      : this.#sessions.delete(session_id);
  }

  #followedConversation(conversation_id: string): Followed<number> | null {
    return this.#isHeard(conversationChannel(conversation_id))
      ? this.#conversations.touch(conversation_id)
      : this.#conversations.delete(conversation_id);
  }

  #isHeard(channel: string): boolean {
    return this.#feed.channels.has(channel) || this.#feed.channels.has(ALL_CHANNEL);
  }
}

/** States by id. If there are too many, the least recently used is dropped. */
class FollowedStates<Place> {
  readonly #states = new Map<string, Followed<Place>>();

  get(id: string): Followed<Place> | undefined {
    return this.#states.get(id);
  }

  touch(id: string): Followed<Place> {
    const state = this.#states.get(id) ?? {
      progress: { kind: "unknown" },
      reading: { kind: "idle" },
      version: 0,
      updated_at: null,
    };
    this.#states.delete(id);
    this.#states.set(id, state);
    if (this.#states.size > MOST_FOLLOWED) this.#states.delete(this.#states.keys().next().value as string);
    return state;
  }

  delete(id: string): null {
    this.#states.delete(id);
    return null;
  }

  clear(): void {
    // A map makes a new table even where it has nothing to clear, and every commit comes here.
    if (this.#states.size > 0) this.#states.clear();
  }
}

/** RELAY-1. Where following began, if that was before the first commit heard of. */
const earliest = (progress: Progress<Position>, { iteration, error_rows }: Position): Position =>
  progress.kind === "began" && isBehind(progress.at, { iteration, error_rows })
    ? progress.at
    : { iteration, error_rows };

const placeOf = <Place>(progress: Progress<Place>, otherwise: Place): Place =>
  progress.kind === "unknown" ? otherwise : progress.at;

const idIn = (kind: "session" | "conversation", channel: string): string | undefined =>
  channel.startsWith(`${kind}:`) ? channel.slice(kind.length + 1) : undefined;
const isBehind = (one: Position, other: Position): boolean =>
  one.iteration < other.iteration || one.error_rows < other.error_rows;
const isAfter = ({ step, error_number }: PlannedStep, at: Position): boolean =>
  step.iteration > at.iteration && (error_number === null || error_number >= at.error_rows);
