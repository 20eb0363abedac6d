import type { Action } from "../domain/action.ts";
import type { Agent, AgentConfig } from "../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../domain/conversation.ts";
import type { SessionCosts } from "../domain/cost.ts";
import type { CommittedEvent, StepDelta } from "../domain/event.ts";
import type { GuidanceAmount } from "../domain/guidance-amount.ts";
import type { SearchHit } from "../domain/search.ts";
import type { Session, SessionStatus } from "../domain/session.ts";
import type { SessionSummary } from "../domain/session-summary.ts";
import type { Step, StepStatus } from "../domain/step.ts";
import type { ArchivedRange, Volume } from "../domain/volume.ts";
import type { StoredDelivery, StoredWebhook } from "../domain/webhook.ts";
import type { ReaderBudget } from "./follow.ts";
import type { Wakes } from "./owned-sessions.ts";
import type { StoredState } from "./state-delta.ts";

/**
 * The store keeps everything that ever happened to a session. What every engine promises:
 *
 * P1  `commit` is the only way to write (except for webhooks: `WebhookStore`). A batch is written whole or not at all, over all its
 *     tables, and once `commit` answered `committed` it survives SIGKILL and loss of power.
 * P2  Iterations have no gaps and no repeats: the `ok` steps of a batch continue the session where it stands, and the
 *     session row in the same batch carries the last one's iteration. Anything else is answered `fenced`.
 * P3  A session is written only by its owner. `update` names the ownership that `create`, `claimSession` or
 *     `claimSessions` gave; one that was released or taken over since is answered `fenced`, and nothing is written.
 *     An owner awaits each commit of a session before it sends the next one for it. A commit that ends a session
 *     (its status is no longer live) ends the ownership too.
 *     No update is lost: each write of a session makes the next revision of its row, and names in its ownership the one that
 *     it was made from. Where that is not the newest, or another write of the session is under way, it is answered
 *     `fenced`, even if the very same worker owns the session.
 * P4  Ids are inserted once. A batch that creates a session, conversation or message whose id is there already is
 *     answered `exists` and writes nothing, so that a caller can look and answer a repeated request as it did before.
 * P5  States go in whole and come out whole, exactly as they went in, however they are stored. A session's `context`
 *     is the state of its last `ok` step.
 * P6  Reads see every commit that was answered before the read began.
 * P7  `claimActions` hands out an action to one claimer only, in the order urgency, arrival within a session, and
 *     never a second one of a session before the first was committed as processed or as waiting for a retry. An action
 *     that waits for a retry is not overtaken by a later one of its session. Claims die with the process.
 *     With a claimed action that carries guidance `claimFollowing` hands out what comes after it in its session, to be settled
 *     in one commit: guidance, and the first request of another kind, before which no more than that guidance comes.
 *     A batch with `only_if_queue_empty` settles actions that were never in the queue. Where another action of their
 *     sessions is in it, the answer is `queue_not_empty` and nothing is written.
 * P8  `follow` yields what was missed since the cursor, then what is committed from then on: no step and no message
 *     is lost or given twice. Of rows that change (sessions, actions) a slow reader gets the newest version. What
 *     waits for a reader is bounded by its budget: where more would wait that cannot be read from the cursor again, it throws
 *     `reader_too_slow`. `all` has no cursor.
 *
 * Outcomes are values. What throws is an `EverstepError` with a next move: the disk is full, the store is out of reach.
 */
export interface Store {
  readonly kind: "lancedb" | "postgres";

  commit(batch: Batch): Promise<CommitOutcome>;

  /** Claims live sessions without an owner for the worker, oldest first. */
  claimSessions(claim: { worker: string; limit: number }): Promise<OwnedSession[]>;
  /** Claims one session, whatever its status. Null if it is unknown or another worker owns it. */
  claimSession(claim: { worker: string; session_id: string }): Promise<OwnedSession | null>;
  /** Ends the worker's ownership of these sessions, or of all. */
  releaseSessions(release: { worker: string; session_ids?: string[] }): Promise<void>;

  /** The next action of each session that has one ready and none under way. */
  claimActions(claim: { worker: string; limit: number }): Promise<Action[]>;
  /**
   * After an action with guidance that was claimed here: the guidance of its session that is next in order, up to `most` with the
   * first included, and then the next request that is not guidance, where nothing before it waits for a retry. Where there is
   * more guidance than `most`, that request overtakes it.
   */
  claimFollowing(claimed: Action, most: GuidanceAmount): Promise<Action[]>;
  /** Called when `claimActions` may have something new. Returns the way to stop it. */
  onWork(listener: () => void): () => void;

  /** Where events of sessions are sent to. */
  readonly webhooks: WebhookStore;

  /** What left the tables for volumes. Reads of steps and messages go through to them; `search` does not. */
  readonly volumes: VolumeStore;

  /** Sessions owned by this process that wait until a time. */
  readonly wakes: Wakes;

  /** A live session from this process's memory, as its last commit here left it. Null says nothing about whether it exists. */
  cachedSession(session_id: string): Session | null;
  getSession(session_id: string): Promise<Session | null>;
  /** The agent of a session; null if the session is unknown. */
  getSessionAgent(session_id: string): Promise<string | null>;
  /** Newest first. Order of creation means the order of writing, not `created_at`. */
  listSessions(filter: SessionFilter): Promise<Session[]>;
  /** In the order of `listSessions`. It reads about as many sessions as it returns, however many there are. */
  summarizeSessions(filter: SummaryFilter): Promise<SessionSummaries>;
  getAgent(agent_id: string): Promise<Agent | null>;
  /** By `agent_id`. */
  listAgents(page: Page): Promise<Agent[]>;
  getAgentConfig(agent_id: string): Promise<AgentConfig | null>;
  /** By `agent_id`. */
  listAgentConfigs(page: Page): Promise<AgentConfig[]>;

  getAction(action_id: string): Promise<Action | null>;
  /** Those that exist, in any order. */
  getActions(action_ids: string[]): Promise<Action[]>;
  /** How much guidance no step has used yet, in the queue and in `pending_guidance`. Nothing if the session is unknown. */
  unusedGuidance(session_id: string): Promise<GuidanceAmount>;
  /** Newest first. */
  listActions(filter: ActionFilter): Promise<Action[]>;

  /** By iteration, then arrival. A fork's steps begin with its parent's up to the fork point. */
  listSteps(filter: StepFilter): Promise<Step[]>;
  /** The newest step of the session, or of the agent's session that moved last. */
  latestStep(of: SessionOrAgent): Promise<Step | null>;

  getConversation(conversation_id: string): Promise<Conversation | null>;
  /** Newest first, as sessions are. */
  listConversations(filter: ConversationFilter): Promise<Conversation[]>;
  getParticipant(participant_id: string): Promise<Participant | null>;
  /** In the order they joined, those who left included. */
  listParticipants(conversation_id: string): Promise<Participant[]>;
  getMessage(message_id: string): Promise<Message | null>;
  /** Oldest first. */
  listMessages(filter: MessageFilter): Promise<Message[]>;
  getCursor(cursor: { session_id: string; conversation_id: string }): Promise<SessionCursor | null>;

  /** Best match first. Letter case and diacritics do not matter. */
  search(query: SearchQuery): Promise<SearchHit[]>;
  counts(): Promise<StoreCounts>;
  /** Sums of what sessions created since the time have used, in any order. Reads sessions, not steps. */
  sumCosts(since: string): Promise<SessionCosts[]>;
  /** Throws if nothing can be written at the moment, for example because the disk is full. */
  checkWritable?(): Promise<void>;
  /** What does not work at the moment, in words for people. Nothing is lost, and it is tried again. */
  problems?(): Promise<string[]>;

  /** Subscribes at once, until the signal is aborted or the reader leaves. */
  follow(topic: Topic, signal: AbortSignal, budget?: ReaderBudget): AsyncIterable<CommittedEvent>;

  /** Waits for what is under way. A second call is harmless. */
  close(): Promise<void>;

  // What only a store of one process can do.

  /**
   * Puts everything as it is now into a folder of its own and answers its path, while commits go on. It is to be copied, not to be
   * opened. A later call, `removeStagedBackup` and a start remove it.
   */
  stageBackup?(): Promise<string>;
  removeStagedBackup?(): Promise<void>;

  // What only a store that several processes share can do.

  /** Called when `claimSessions` may have something new: another worker died, left, or gave some up. */
  onFreeSessions?(listener: () => void): () => void;
  /** Other workers have fewer sessions. The listener gets all of this process, in random order, and how many it should release. */
  onSurplus?(listener: (session_ids: string[], count: number) => void): () => void;
  /** Text of a running step for those who follow it in other processes. It is shown, never stored, and may be lost. */
  publishDelta?(delta: StepDelta): void;
  onDelta?(listener: (delta: StepDelta) => void): () => void;
  /** Tells other processes which of the sessions that they have held since their start may go on. It may be lost. */
  publishRelease?(release: SessionRelease): void;
  onRelease?(listener: (release: SessionRelease) => void): () => void;
  /** The process is stopping: from now on calls fail soon instead of waiting for a database that does not answer. */
  prepareToStop?(): void;
  /** Runs the work while holding the lock of that name. One process at a time has it. */
  withLock?<Result>(name: string, work: () => Promise<Result>): Promise<Result>;
  /**
   * Deletes sessions that are done or stopped since before the time, with all that is theirs, unless a fork needs them, and
   * archived conversations in which nothing was said since. Others may go on meanwhile.
   */
  prune?(before: string): Promise<Pruned>;
  /**
   * Whether the owner that was taken for dead lives after all: it had only lost its connection. It tells so as soon as it is back.
   * Left out where only one process can have the store, whose death is certain.
   */
  lastOwnerLives?(session_id: string): Promise<boolean>;
  /** The processes that share the store. */
  listWorkers?(): Promise<WorkerInfo[]>;
}

/** Some sessions, those of an agent, or all. */
export type SessionRelease = { session_ids?: string[]; agent_id?: string; all?: boolean };
export type Pruned = { sessions: number; conversations: number };

export type WorkerInfo = {
  name: string;
  started_at: string;
  /** Whether it runs agents; one that does not only serves. */
  takes_sessions: boolean;
  owned_sessions: number;
  /** Actions that it has claimed and not settled yet. */
  actions_under_way: number;
  /** Milliseconds since it was last heard of. */
  silent_ms: number;
  /** Milliseconds for which something in it, most likely a step, has not let anything else run; 0 where it does not. */
  blocked_ms: number;
};

/**
 * Who may write a session, and which revision of its row the writer has seen. The epoch grows with every change of owner, the
 * revision by one with every write, so the writer of revision n goes on with n + 1.
 */
export type Ownership = { worker: string; epoch: number; revision: number };
export type OwnedSession = {
  session: Session;
  owner: Ownership;
  /** The last owner died, rather than released the session, and nothing was committed for it since. */
  after_crash: boolean;
};

export type SessionWrite =
  /** Owned by `worker` with epoch 1 and revision 0, or by nobody and then free to be claimed. */
  { kind: "create"; session: Session; worker: string | null } | { kind: "update"; session: Session; owner: Ownership };

type ConversationWrite = { kind: "create" | "update"; conversation: Conversation };

/** Rows are complete. Those without `kind` are inserted, or replace the row with their key if the table is not append-only. */
export type Batch = {
  sessions?: SessionWrite[];
  /** Each belongs to a session that the same batch writes. */
  steps?: Step[];
  messages?: Message[];
  actions?: Action[];
  conversations?: ConversationWrite[];
  participants?: Participant[];
  cursors?: SessionCursor[];
  agent_configs?: AgentConfig[];
  /** Write nothing if the session of one of its actions has another action that is not processed. */
  only_if_queue_empty?: true;
};

export type CommitOutcome =
  | { kind: "committed" }
  | { kind: "fenced"; session_id: string }
  | { kind: "queue_not_empty"; session_id: string }
  | { kind: "exists"; table: "agent_state" | "conversations" | "conversation_messages"; id: string };

export type Page = { limit: number; offset: number };
/** The order of lists of sessions, newest first. Of those updated at the same time, the one created later comes first. */
export type SessionSort = "created_at" | "updated_at";
/** A cursor into a list: the last session of a page, and its time of `sort` when the page was read. */
export type ListPlace = { session_id: string; at: string };
export type SessionOrder = {
  /** `created_at` by default. */
  sort?: SessionSort;
  /**
   * Only what comes after that place; `offset` counts from there. Sessions that are created or updated meanwhile come before it,
   * so none of the others is left out or given twice.
   */
  after?: ListPlace;
};
/** `spawned_by` is the session that started them, `parent_session_id` the one that they were forked from. */
export type SessionFilter = Page &
  SessionOrder & {
    status?: SessionStatus;
    agent_id?: string;
    needs_person?: boolean;
    spawned_by?: string;
    parent_session_id?: string;
  };
/** `q` is found in ids, moniker and the beginning of the last result, letter case and diacritics aside. */
export type SummaryFilter = Page &
  SessionOrder & {
    statuses?: SessionStatus[];
    agent_id?: string;
    moniker?: string;
    q?: string;
    session_ids?: string[];
    /** Only those that need a person. */
    needs_person?: boolean;
    /** Only those that this session started. */
    spawned_by?: string;
    /** Only forks of this session. */
    parent_session_id?: string;
    /** Only those whose time of `sort` is this one or later. */
    since?: string;
  };
/** A page of summaries; `counts` by status does not heed `statuses`, `total` does, and neither heeds `after`. */
export type SessionSummaries = {
  sessions: SessionSummary[];
  total: number;
  counts: Record<SessionStatus, number>;
  /** False if too many match `q` or `since` to be counted; `total` and `counts` are then lower bounds. */
  exact: boolean;
};
export type ActionFilter = Page & { session_id?: string; agent_id?: string; processed?: boolean };
export type ConversationFilter = Page & { status?: Conversation["status"]; tag?: string };
/** `since` includes messages of that very time; `after` excludes the message it names, and names nothing where that is unknown. */
export type MessageFilter = Page & { conversation_id: string; since?: string; after?: string };
export type SessionOrAgent = { session_id: string } | { agent_id: string };
/** Bounds are inclusive, except for `after_iteration`. */
export type StepFilter = Page &
  SessionOrAgent & {
    min_iteration?: number;
    max_iteration?: number;
    after_iteration?: number;
    since_created_at?: string;
    status?: StepStatus;
  };

export type SearchQuery = { q: string; agent_id?: string; session_id?: string; limit: number };
export type StoreCounts = {
  sessions: Record<SessionStatus, number>;
  /** Actions that are not processed, and the arrival of the oldest of them. */
  queue_depth: number;
  oldest_pending_at: string | null;
};

/** Without a cursor only what is committed from now on is followed; an empty `after` means from the beginning. */
export type Topic =
  | { session_id: string; after_iteration?: number }
  | { conversation_id: string; after?: string }
  | { all: true };

/** Asks for deliveries: up to `most` for each webhook, less what `busy` says is under way for it. */
export type DeliveryClaim = { now: string; most: number; busy: ReadonlyMap<string, number> };
/** A delivery that this process is to attempt, and the webhook as it was then. */
export type ClaimedDelivery = { delivery: StoredDelivery; webhook: StoredWebhook };

/**
 * Webhooks and what is on its way to them. What every engine promises:
 *
 * HOOKS-1  A delivery is written by the very commit that makes the event (`eventOf`), for each webhook that was there when the
 *     commit began: it cannot be lost in between, and a commit that came to nothing leaves none.
 * HOOKS-2  A delivery is claimed by one process at a time. Claims die with the process.
 * HOOKS-3  A later delivery of a session to the same webhook is not handed out while an earlier one is pending.
 * HOOKS-4  What removes or settles a delivery does so once: one whose webhook was removed meanwhile stays removed.
 *
 * What is answered is durable, but for claims and the ends of attempts, which a crash may repeat.
 */
export interface WebhookStore {
  /**
   * Adds the webhook, or changes address, events and agent of the one that is there, which keeps its secrets and its time of
   * creation. Answers what is stored then.
   */
  put(webhook: StoredWebhook): Promise<StoredWebhook>;
  /** Gives it another secret; the one that it had signs as well until that time. Null where it is unknown. */
  replaceSecret(webhook_id: string, change: { secret: string; former_until: string }): Promise<StoredWebhook | null>;
  get(webhook_id: string): Promise<StoredWebhook | null>;
  /** By id. */
  list(page: Page): Promise<StoredWebhook[]>;
  /** With its deliveries. False where it is unknown. */
  remove(webhook_id: string): Promise<boolean>;

  /** Newest first; only those before `after` where it is given. */
  listDeliveries(filter: { webhook_id: string; after?: string; limit: number }): Promise<StoredDelivery[]>;
  getDelivery(delivery_id: string): Promise<StoredDelivery | null>;

  /** Those that are due, the longest due first. */
  claim(claim: DeliveryClaim): Promise<ClaimedDelivery[]>;
  /** Writes how an attempt ended. Whatever becomes of it, the claim is over. */
  settle(delivery: StoredDelivery): Promise<void>;
  /** Makes a delivery due, whatever became of it. Null where it is unknown. */
  sendAgain(delivery_id: string, change: { now: string; retry_until: string }): Promise<StoredDelivery | null>;
  /** Removes what was delivered or given up before the time. Answers how many. */
  removeEnded(before: string): Promise<number>;
  /** Adds rows as they are: for a store that takes over another's. */
  restore(rows: { webhooks: StoredWebhook[]; deliveries: StoredDelivery[] }): Promise<void>;

  /** Called when `claim` may have something new. Returns the way to stop it. */
  onDue(listener: () => void): () => void;
}

/** A step as tables and volumes hold it. `pos` is of the embedded engine, 0 elsewhere. */
export type StoredStepRow = Omit<Step, "state"> & StoredState & { pos: number };
export type StoredMessageRow = Message & { number: number; pos: number };

/** An ended session whose tables have steps that no volume has: those from iteration `first` on, and the later failed attempts. */
export type EndedSession = {
  session_id: string;
  agent_id: string;
  first: number;
  iteration: number;
  error_rows: number;
  /** How many of these are in volumes already. */
  archived_error_rows: number;
  ended_at: string;
};
/** A conversation all of whose sessions ended, and the numbers of its messages that the tables have. */
export type QuietConversation = { conversation_id: string; first: number; last: number };

/** Of an agent: those of its sessions' steps. */
export type RangesOf = { volume_id: string } | { owner_ids: readonly string[] } | { agent_id: string };

/** Reads rows of volumes. It throws `archive_unreachable` or `archive_damaged`. */
export interface VolumeReader {
  /** Rows of a range, counted from its beginning. */
  steps(volume: Volume, range: ArchivedRange, from: number, count: number): Promise<StoredStepRow[]>;
  messages(volume: Volume, range: ArchivedRange, from: number, count: number): Promise<StoredMessageRow[]>;
  findMessage(volume: Volume, message_id: string): Promise<StoredMessageRow | null>;
}

/**
 * Which rows are in volumes, and the moves there and back. What every engine promises:
 *
 * VOLUMES-1  A row is in the tables or in a volume that counts, at any moment: `move` and `restore` change rows and ranges in one
 *     durable transaction. A range that is `copied` does not count yet.
 * VOLUMES-2  A range is moved only where its session has ended and stands where it stood when it was copied; otherwise the range is
 *     forgotten and the rows stay. What a range holds never changes, so a session that is resumed later goes on after it.
 * VOLUMES-3  A volume is announced before its files are made, and recorded only while it is announced. So files whose volume is
 *     announced or dropped are leftovers. Files of volumes that the store does not know belong to somebody else.
 */
export interface VolumeStore {
  /** How volumes are read; without it a read of archived rows throws `archive_unreachable`. */
  attach(reader: VolumeReader): void;
  /** Oldest first. */
  list(): Promise<Volume[]>;
  ranges(of: RangesOf): Promise<ArchivedRange[]>;
  /** How many sessions, of these, have steps in volumes. */
  countArchived(of: { agent_id?: string | undefined; session_id?: string | undefined }): Promise<number>;

  /** Those that ended before the time, the oldest first as far as the engine has them in an order. */
  endedSessions(before: string): AsyncIterable<EndedSession>;
  /** All their sessions ended before the time, and no message is as young. */
  quietConversations(before: string): AsyncIterable<QuietConversation>;
  /** Of each session in turn what `EndedSession` names, in the order of a page. */
  readSteps(sessions: readonly EndedSession[]): AsyncIterable<StoredStepRow>;
  readMessages(conversations: readonly QuietConversation[]): AsyncIterable<StoredMessageRow>;

  /** VOLUMES-3. */
  announce(volume: Volume): Promise<void>;
  /** Makes an announced volume one that is moved to, with its ranges. False where it is no longer announced. */
  record(volume: Volume, ranges: readonly ArchivedRange[]): Promise<boolean>;
  /** Some ranges of one kind that are copied leave the tables. Answers how many did (VOLUMES-2). */
  move(ranges: readonly ArchivedRange[]): Promise<number>;
  /** A volume of which nothing is left to move. */
  finish(volume_id: string): Promise<void>;
  /** The rows of a range come back into the tables. Newer ranges of a session come back before older ones. */
  restore(range: ArchivedRange, rows: { steps: StoredStepRow[] } | { messages: StoredMessageRow[] }): Promise<void>;
  /** Whole volumes that nobody needs: all sessions, and all forks of them, ended before the time. */
  droppable(before: string): Promise<Volume[]>;
  /** From now on their rows are gone for good. */
  drop(volume_id: string): Promise<void>;
  /** Removes a volume that is announced, or has no range left. */
  forget(volume_id: string): Promise<void>;
  /** Runs the work, which removes files, while none of them is being copied for a backup. */
  removing?(work: () => Promise<void>): Promise<void>;
  /** Takes what the moves left behind out of the tables' files, as far as the engine does not do it by itself. */
  reclaim?(): Promise<void>;
}
