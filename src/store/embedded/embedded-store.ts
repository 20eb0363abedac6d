import { WorkSignal } from "../../concurrency/work-signal.ts";
import type { Action } from "../../domain/action.ts";
import type { Agent, AgentConfig } from "../../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../domain/conversation.ts";
import type { SessionCosts } from "../../domain/cost.ts";
import type { CommittedEvent } from "../../domain/event.ts";
import { amountOf, type GuidanceAmount } from "../../domain/guidance-amount.ts";
import { now } from "../../domain/ids.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SearchHit } from "../../domain/search.ts";
import type { Session } from "../../domain/session.ts";
import { summaryOf } from "../../domain/session-summary.ts";
import type { Step } from "../../domain/step.ts";
import { CommitQueue, type QueuedBatch, WORTH_A_SYNC, type Written } from "../commit-queue.ts";
import { CommitFeed, follow, type ReaderBudget } from "../follow.ts";
import { decodeSteps, type StoredStep, toMessage } from "../history-pages.ts";
import type { Wakes } from "../owned-sessions.ts";
import type * as port from "../store.ts";
import { closed, Lifetime } from "../store-errors.ts";
import { probeDisk } from "./data-folder.ts";
import { EmbeddedVolumes } from "./embedded-volumes.ts";
import { EmbeddedWebhooks } from "./embedded-webhooks.ts";
import type { MatchedRow } from "./history.ts";
import { LiveSessions, PendingActions } from "./live-rows.ts";
import type { Notice, OtherSchema } from "./migrations.ts";
import { wholePage } from "./page-size.ts";
import type { EmbeddedStats, LoadedSession } from "./storage-thread.ts";
import { EMBEDDED_TABLES, EmbeddedTables, type Values } from "./tables.ts";
import { ThreadChannel, type ThreadTuning } from "./thread-channel.ts";
import { type BatchMessage, cursorKey, measure, toRowsMessage, toSent, unpackError } from "./thread-messages.ts";

export type { Tuning } from "./archiver.ts";

type EmbeddedOptions = { folder: string; tuning?: ThreadTuning; notice?: Notice } & Partial<OtherSchema>;

export function openEmbeddedStore({ folder, tuning = {}, notice, schema, migrations = [] }: EmbeddedOptions) {
  return openOver(new ThreadChannel(folder, tuning, notice, schema ? { schema, migrations } : null));
}

/** Uses a thread that may already be opening the folder. */
export async function openOver(channel: ThreadChannel): Promise<EmbeddedStore> {
  try {
    await channel.opened;
    const store = new EmbeddedStore(channel);
    await store.load();
    return store;
  } catch (error) {
    await channel.end(closed());
    throw error;
  }
}

const LOAD_PAGE = 500;
const PROBE_EVERY_MS = 2000;
/** Groups in flight to the journal's thread: it writes one while the results of the other are processed. */
const GROUPS = 2;
/** Limits a group, to bound the memory of the journal's thread. */
const LARGEST_GROUP = { batches: Number.POSITIVE_INFINITY, characters: 32 << 20 };

/** The journal's thread writes groups in order, so no two can conflict. */
const UNORDERED = { kind: "rows", keys: [], scopes: [] };
const COMMITTED: Written<undefined> = { outcome: { kind: "committed" }, feedback: undefined };
/** What a step's state is rebuilt from. */
const STATE_OF_STEP = ["session_id", "status", "state_kind", "base_iteration", "state"] as const;
type EmbeddedBatch = QueuedBatch & { message: BatchMessage };

export class EmbeddedStore implements port.Store {
  readonly kind = "lancedb";
  readonly #channel: ThreadChannel;
  readonly #tables: EmbeddedTables;
  readonly #toStoredState: (step: Values) => StoredStep["stored"];
  readonly webhooks: EmbeddedWebhooks;
  readonly volumes: EmbeddedVolumes;
  readonly #live = new LiveSessions();
  readonly #pending = new PendingActions();
  readonly #feed = new CommitFeed();
  readonly #work = new WorkSignal(() => this.#pending.nextRetryAt());
  readonly #queue: CommitQueue<EmbeddedBatch, undefined>;
  readonly #lifetime = new Lifetime();
  /** The position of the next row. A failed batch leaves its positions unused. */
  #nextPosition = 1;
  #probe: { at: number; done: Promise<void> } | undefined;

  constructor(channel: ThreadChannel) {
    this.#channel = channel;
    this.#tables = channel.other ? new EmbeddedTables(channel.other.schema) : EMBEDDED_TABLES;
    this.#toStoredState = this.#tables.reader("agent_steps", STATE_OF_STEP);
    this.webhooks = new EmbeddedWebhooks(channel);
    this.volumes = new EmbeddedVolumes(channel, this.#tables);
    const writer = { write: (batches: EmbeddedBatch[]) => this.#write(batches) };
    this.#queue = new CommitQueue({
      writers: Array.from({ length: GROUPS }, () => writer),
      most: LARGEST_GROUP,
      isWorthGroup: (waiting) => waiting >= WORTH_A_SYNC,
      schedule: queueMicrotask,
      isEager: false,
    });
  }

  async load(): Promise<void> {
    this.#nextPosition = (await this.#channel.call("position")) + 1;
    await this.webhooks.load();
    await this.volumes.load();
    for (let after: string | null = ""; after !== null; ) {
      const { actions, last }: { actions: Values[]; last: string | null } = await this.#channel.call(
        "loadPending",
        after,
      );
      for (const values of actions) this.#pending.update(this.#tables.toPort("queue", values));
      after = last;
    }
    const after_crash = await this.#channel.call("wasLeftOpen");
    let reading = this.#channel.call("loadLive", 0, LOAD_PAGE);
    for (let isWhole = false; !isWhole; ) {
      const { sessions, last } = await reading;
      isWhole = last < 0;
      // The thread reads the next page while this one is processed.
      if (!isWhole) reading = this.#channel.call("loadLive", last, LOAD_PAGE);
      for (const loaded of sessions)
        this.#live.load({ ...loaded, session: toSession(this.#tables, loaded) }, after_crash);
    }
    this.#work.emit();
  }

  async commit(batch: port.Batch): Promise<port.CommitOutcome> {
    this.#lifetime.requireOpen();
    const busy = batch.only_if_queue_empty ? this.#pending.busySession(batch.actions ?? []) : null;
    if (busy !== null) return { kind: "queue_not_empty", session_id: busy };
    const planned = this.#live.plan(batch);
    if (planned.kind === "fenced") return planned;
    const { plans } = planned;
    const deliveries = this.webhooks.deliveriesOf(plans); // HOOKS-1
    const rows = toRowsMessage(this.#tables, batch, plans, deliveries);
    const size = measure(rows);
    const message = { ...rows, first: this.#nextPosition };
    this.#nextPosition += size.rows;
    for (const plan of plans) plan.begun();
    try {
      return await this.#queue.commit({ message, characters: size.characters, ...UNORDERED }, () => {
        for (const plan of plans) plan.committed();
        for (const action of batch.actions ?? []) this.#pending.update(action);
        this.#publish(batch);
        if (deliveries.length > 0) this.webhooks.due.emit();
        if (batch.actions?.length || batch.sessions?.some(({ kind }) => kind === "create")) this.#work.emit();
      });
    } finally {
      for (const plan of plans) plan.ended();
    }
  }

  async #write(batches: EmbeddedBatch[]): Promise<Written<undefined>[]> {
    const outcomes = await this.#channel.call(
      "apply",
      batches.map(({ message }) => toSent(message)),
    );
    if (outcomes === null) return batches.map(() => COMMITTED);
    return outcomes.map((outcome) =>
      outcome.kind === "failed" ? { error: unpackError(outcome.error) } : { outcome, feedback: undefined },
    );
  }

  async claimSessions({ worker, limit }: { worker: string; limit: number }): Promise<port.OwnedSession[]> {
    return this.#live.claimFree(worker, limit);
  }

  async claimSession(claim: { worker: string; session_id: string }): Promise<port.OwnedSession | null> {
    const { worker, session_id } = claim;
    await this.#live.loadResting(session_id, async () => {
      const [loaded] = (await this.#channel.call("loadSessions", [session_id])).sessions;
      return loaded && { ...loaded, session: toSession(this.#tables, loaded) };
    });
    return this.#live.claim(session_id, worker);
  }

  async releaseSessions({ worker, session_ids }: { worker: string; session_ids?: string[] }): Promise<void> {
    const fenced = (session_ids ?? this.#live.ownedBy(worker)).filter((id) => this.#live.fence(id, worker));
    // The next owner must start from the old owner's commits in progress.
    await this.#queue.drained();
    for (const id of fenced) this.#live.free(id);
    if (fenced.length > 0) this.#work.emit();
  }

  async claimActions({ limit }: { worker: string; limit: number }): Promise<Action[]> {
    const actions = this.#pending.claim(limit, now());
    this.#work.wait();
    return actions;
  }

  async claimFollowing(claimed: Action, most: GuidanceAmount): Promise<Action[]> {
    return this.#pending.claimFollowing(claimed, most, now());
  }

  onWork(listener: () => void): () => void {
    return this.#work.listen(listener);
  }

  get wakes(): Wakes {
    return this.#live.wakes;
  }

  cachedSession(session_id: string): Session | null {
    return this.#live.cached(session_id);
  }

  async getSession(session_id: string): Promise<Session | null> {
    return (await this.#sessions([session_id]))[0] ?? null;
  }

  async getSessionAgent(session_id: string): Promise<string | null> {
    const session = this.#live.cached(session_id) ?? (await this.getSession(session_id));
    return session?.agent_id ?? null;
  }

  async listSessions(filter: port.SessionFilter): Promise<Session[]> {
    return this.#sessions(await this.#channel.call("sessionIds", filter, this.#live.askingInState()));
  }

  async summarizeSessions(filter: port.SummaryFilter): Promise<port.SessionSummaries> {
    const { rows, ...counted } = await this.#channel.call("sessionSummaries", filter, this.#live.askingInState());
    return { sessions: rows.map((values) => summaryOf(this.#tables.toStored("agent_state", values))), ...counted };
  }

  async getAgent(agent_id: string): Promise<Agent | null> {
    return (await this.#agents(agent_id, { limit: 1, offset: 0 }))[0] ?? null;
  }

  async listAgents(page: port.Page): Promise<Agent[]> {
    return this.#agents(null, page);
  }

  async getAgentConfig(agent_id: string): Promise<AgentConfig | null> {
    const values = await this.#channel.call("agentConfig", agent_id);
    return values && this.#tables.toPort("agent_config", values);
  }

  async listAgentConfigs({ limit, offset }: port.Page): Promise<AgentConfig[]> {
    const rows = await this.#channel.call("agentConfigs", limit, offset);
    return rows.map((values) => this.#tables.toPort("agent_config", values));
  }

  async getAction(action_id: string): Promise<Action | null> {
    const values = await this.#channel.call("history.action", action_id);
    return values && this.#tables.toPort("queue", values);
  }

  async getActions(action_ids: string[]): Promise<Action[]> {
    const page = { limit: action_ids.length, offset: 0 };
    const rows = await wholePage(page, ({ limit, offset }) =>
      this.#channel.call("history.actionsById", action_ids.slice(offset, offset + limit)),
    );
    return rows.flatMap((values) => (values ? [this.#tables.toPort("queue", values)] : []));
  }

  async unusedGuidance(session_id: string): Promise<GuidanceAmount> {
    const session = this.#live.cached(session_id) ?? (await this.getSession(session_id));
    return amountOf([...this.#pending.guidanceFor(session_id), ...(session?.pending_guidance ?? [])]);
  }

  async listActions(filter: port.ActionFilter): Promise<Action[]> {
    const rows = await wholePage(filter, (part) => this.#channel.call("history.actions", { ...filter, ...part }));
    return rows.map((values) => this.#tables.toPort("queue", values));
  }

  listSteps(filter: port.StepFilter): Promise<Step[]> {
    const { gate, history } = this.volumes;
    return gate.shared(async () => {
      if (!this.volumes.hasAny) return this.#steps(filter);
      if ("agent_id" in filter) {
        const ranges = await this.volumes.ranges(filter);
        if (ranges.length === 0) return this.#steps(filter);
        const hot = await this.#steps({ ...filter, limit: filter.offset + filter.limit, offset: 0 });
        return history.stepsOfAgent(filter, ranges, hot);
      }
      const line = await this.#channel.call("history.line", filter.session_id);
      const ranges = await this.volumes.ranges({ owner_ids: line.map(({ session_id }) => session_id) });
      if (ranges.length === 0) return this.#steps(filter);
      return history.steps(filter, line, ranges, (part) => this.#steps(part));
    });
  }

  /** What the journal and LanceDB have. */
  async #steps(filter: port.StepFilter): Promise<Step[]> {
    const page = await wholePage(filter, (part) => this.#channel.call("history.steps", { ...filter, ...part }));
    return decodeSteps(
      page.map(({ step, bases }) => ({
        step: { stored: this.#toStoredState(step), port: this.#tables.toPort("agent_steps", step) },
        bases: bases.map(this.#toStoredState),
      })),
    );
  }

  async latestStep(of: port.SessionOrAgent): Promise<Step | null> {
    const session_id = "session_id" in of ? of.session_id : await this.#channel.call("lastUpdatedSession", of.agent_id);
    const session = session_id === null ? null : await this.getSession(session_id);
    if (session_id === null || !session) return null;
    const min_iteration = Math.max(0, session.iteration);
    let latest: Step | null = null;
    for (let offset = 0; ; offset += LOAD_PAGE) {
      const page = await this.listSteps({ session_id, min_iteration, limit: LOAD_PAGE, offset });
      latest = page.at(-1) ?? latest;
      if (page.length < LOAD_PAGE) return latest;
    }
  }

  async getConversation(conversation_id: string): Promise<Conversation | null> {
    const values = await this.#channel.call("conversation", conversation_id);
    return values && this.#tables.toPort("conversations", values);
  }

  async listConversations({ status, tag, limit, offset }: port.ConversationFilter): Promise<Conversation[]> {
    const rows = await this.#channel.call("conversations", status ?? null, tag ?? null, limit, offset);
    return rows.map((values) => this.#tables.toPort("conversations", values));
  }

  async getParticipant(participant_id: string): Promise<Participant | null> {
    const values = await this.#channel.call("participant", participant_id);
    return values && this.#tables.toPort("conversation_participants", values);
  }

  async listParticipants(conversation_id: string): Promise<Participant[]> {
    const rows = await this.#channel.call("participants", conversation_id);
    return rows.map((values) => this.#tables.toPort("conversation_participants", values));
  }

  async getMessage(message_id: string): Promise<Message | null> {
    return this.volumes.gate.shared(async () => {
      const stored = await this.#message(message_id);
      return stored && toMessage(stored);
    });
  }

  async #message(message_id: string): Promise<port.StoredMessageRow | null> {
    const values = await this.#channel.call("history.message", message_id);
    if (values) return this.#tables.toStored("conversation_messages", values);
    return this.volumes.hasAny ? this.volumes.history.findMessage(message_id) : null;
  }

  listMessages(filter: port.MessageFilter): Promise<Message[]> {
    const { gate, history } = this.volumes;
    const { conversation_id, after } = filter;
    return gate.shared(async () => {
      const ranges = await this.volumes.ranges({ owner_ids: [conversation_id] });
      if (ranges.length === 0) return this.#messages(filter);
      const last = after === undefined ? null : await this.#message(after);
      if (after !== undefined && last?.conversation_id !== conversation_id) return [];
      return history.messages(filter, (last?.number ?? 0) + 1, ranges, (part) => this.#messages(part));
    });
  }

  async #messages(filter: port.MessageFilter & { first?: number }): Promise<Message[]> {
    const rows = await wholePage(filter, (part) => this.#channel.call("history.messages", { ...filter, ...part }));
    return rows.map((values) => this.#tables.toPort("conversation_messages", values));
  }

  async getCursor(cursor: { session_id: string; conversation_id: string }): Promise<SessionCursor | null> {
    const values = await this.#channel.call("cursor", cursorKey(cursor));
    return values && this.#tables.toPort("session_cursors", values);
  }

  async search(query: port.SearchQuery): Promise<SearchHit[]> {
    return (await this.#channel.call("history.search", query)).map((row) => toHit(this.#tables, row));
  }

  async counts(): Promise<port.StoreCounts> {
    const sessions = await this.#channel.call("sessionCounts");
    return { sessions, queue_depth: this.#pending.depth, oldest_pending_at: this.#pending.oldest };
  }

  async sumCosts(since: string): Promise<SessionCosts[]> {
    return this.#channel.call("sessionCosts", since);
  }

  async problems(): Promise<string[]> {
    const { failure } = await this.stats();
    return failure === null ? [] : [`rows cannot be moved into LanceDB: ${failure}`];
  }

  /** Probes the disk at most once per interval. */
  checkWritable(): Promise<void> {
    const at = performance.now();
    if (!this.#probe || at - this.#probe.at > PROBE_EVERY_MS)
      this.#probe = { at, done: probeDisk(this.#channel.folder) };
    return this.#probe.done;
  }

  stageBackup(): Promise<string> {
    return this.volumes.files.run(() => this.#channel.call("stageCopy"));
  }

  removeStagedBackup(): Promise<void> {
    return this.#channel.call("removeStaged");
  }

  follow(topic: port.Topic, signal: AbortSignal, budget?: ReaderBudget): AsyncIterable<CommittedEvent> {
    return follow(this, this.#feed, topic, AbortSignal.any([signal, this.#lifetime.signal]), budget);
  }

  /** Archives every final row now, and copies the snapshots. */
  checkpoint(): Promise<void> {
    return this.#channel.call("checkpoint", false);
  }

  /** The same, and compacts the tables. */
  compact(): Promise<void> {
    return this.#channel.call("checkpoint", true);
  }

  stats(): Promise<EmbeddedStats> {
    return this.#channel.call("stats");
  }

  close(): Promise<void> {
    return this.#lifetime.close(async () => {
      this.#work.stop();
      this.webhooks.due.clear();
      await this.#queue.drained();
      await this.#channel.close(closed());
    });
  }

  async #sessions(ids: string[]): Promise<Session[]> {
    const resting = ids.filter((id) => !this.#live.cached(id));
    const byId = new Map<string, Session>();
    while (resting.length > 0) {
      const { sessions, count } = await this.#channel.call("loadSessions", resting);
      for (const loaded of sessions) byId.set(loaded.values[0] as string, toSession(this.#tables, loaded));
      resting.splice(0, count);
    }
    // A session that ended or became live meanwhile is in one of the two.
    return ids.flatMap((id) => copyOf(this.#live.cached(id)) ?? byId.get(id) ?? []);
  }

  async #agents(only: string | null, { limit, offset }: port.Page): Promise<Agent[]> {
    const rows = await this.#channel.call("agents", only, limit, offset);
    const sessions = await this.#sessions(rows.map((row) => row.latest));
    const latest = new Map(sessions.map((session) => [session.session_id, session]));
    return rows.flatMap(({ agent_id, counts, latest: id }) => {
      const session = latest.get(id);
      const session_count = Object.values(counts).reduce((sum, count) => sum + count, 0);
      return session ? [{ agent_id, moniker: session.moniker, session_count, counts, latest: session }] : [];
    });
  }

  #publish({ steps, sessions, actions, messages }: port.Batch): void {
    for (const step of steps ?? []) this.#feed.publish({ kind: "step", step });
    for (const message of messages ?? []) this.#feed.publish({ kind: "message", message });
    for (const action of actions ?? []) this.#feed.publish({ kind: "action", action });
    for (const { session } of sessions ?? [])
      this.#feed.publish({ kind: "session", session: this.#live.cached(session.session_id) ?? session });
  }
}

function toSession(tables: EmbeddedTables, { values, params, context, chain }: LoadedSession): Session {
  const state = chain?.state ?? (context === null ? {} : (JSON.parse(context) as JsonObject));
  return { ...tables.toPort("agent_state", values), params: JSON.parse(params) as JsonObject, context: state };
}

function toHit(tables: EmbeddedTables, { table, score, values }: MatchedRow): SearchHit {
  if (table === "agent_steps") {
    const { text, session_id, iteration } = tables.toPort(table, values);
    return { kind: "step", score, text: text ?? "", session_id, iteration };
  }
  const { text, conversation_id, message_id, session_id } = tables.toPort(table, values);
  const hit = { kind: "message" as const, score, text: text ?? "", conversation_id, message_id };
  return session_id === null ? hit : { ...hit, session_id };
}

/** Copies what is cached, since a reader may modify a row. */
const copyOf = (session: Session | null): Session | null => session && structuredClone(session);
