import type { Action } from "../../domain/action.ts";
import type { Agent, AgentConfig } from "../../domain/agent.ts";
import type { Conversation, Message, Participant, SessionCursor } from "../../domain/conversation.ts";
import type { SearchHit } from "../../domain/search.ts";
import type { Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import type { GuidanceAmount } from "../guidance-amount.ts";
import type * as port from "../store.ts";
import type { Pool } from "./connections.ts";
import { prune } from "./prune.ts";
import { RowReads } from "./row-reads.ts";
import { SessionReads } from "./session-reads.ts";
import { StepReads } from "./step-reads.ts";
import { listWorkers } from "./worker-list.ts";

/** The port's reads, and what keeps them small. */
export class PostgresReads {
  readonly #pool: Pool;
  protected readonly reads: { sessions: SessionReads; steps: StepReads; rows: RowReads };

  constructor(pool: Pool) {
    this.#pool = pool;
    this.reads = { sessions: new SessionReads(pool), steps: new StepReads(pool), rows: new RowReads(pool) };
  }

  getSession(session_id: string): Promise<Session | null> {
    return this.reads.sessions.get(session_id);
  }

  listSessions(filter: port.SessionFilter): Promise<Session[]> {
    return this.reads.sessions.list(filter);
  }

  summarizeSessions(filter: port.SummaryFilter): Promise<port.SessionSummaries> {
    return this.reads.sessions.summarize(filter);
  }

  async getAgent(agent_id: string): Promise<Agent | null> {
    return (await this.reads.sessions.agents(agent_id, { limit: 1, offset: 0 }))[0] ?? null;
  }

  listAgents(page: port.Page): Promise<Agent[]> {
    return this.reads.sessions.agents(null, page);
  }

  getAgentConfig(agent_id: string): Promise<AgentConfig | null> {
    return this.reads.rows.agentConfig(agent_id);
  }

  listAgentConfigs(page: port.Page): Promise<AgentConfig[]> {
    return this.reads.rows.agentConfigs(page);
  }

  prune(before: string): Promise<port.Pruned> {
    return prune(this.#pool, before);
  }

  getAction(action_id: string): Promise<Action | null> {
    return this.reads.rows.action(action_id);
  }

  getSessionAgent(session_id: string): Promise<string | null> {
    return this.reads.rows.sessionAgent(session_id);
  }

  getActions(action_ids: string[]): Promise<Action[]> {
    return this.reads.rows.someActions(action_ids);
  }

  unusedGuidance(session_id: string): Promise<GuidanceAmount> {
    return this.reads.rows.unusedGuidance(session_id);
  }

  listActions(filter: port.ActionFilter): Promise<Action[]> {
    return this.reads.rows.actions(filter);
  }

  listSteps(filter: port.StepFilter): Promise<Step[]> {
    return this.reads.steps.list(filter);
  }

  async latestStep(of: port.SessionOrAgent): Promise<Step | null> {
    const session_id = "session_id" in of ? of.session_id : await this.reads.sessions.lastMoved(of.agent_id);
    return session_id === null ? null : this.reads.steps.latest(session_id);
  }

  getConversation(conversation_id: string): Promise<Conversation | null> {
    return this.reads.rows.conversation(conversation_id);
  }

  listConversations(filter: port.ConversationFilter): Promise<Conversation[]> {
    return this.reads.rows.conversations(filter);
  }

  getParticipant(participant_id: string): Promise<Participant | null> {
    return this.reads.rows.participant(participant_id);
  }

  listParticipants(conversation_id: string): Promise<Participant[]> {
    return this.reads.rows.participants(conversation_id);
  }

  getMessage(message_id: string): Promise<Message | null> {
    return this.reads.rows.message(message_id);
  }

  listMessages(filter: port.MessageFilter): Promise<Message[]> {
    return this.reads.rows.messages(filter);
  }

  getCursor(cursor: { session_id: string; conversation_id: string }): Promise<SessionCursor | null> {
    return this.reads.rows.cursor(cursor);
  }

  search(query: port.SearchQuery): Promise<SearchHit[]> {
    return this.reads.rows.search(query);
  }

  async counts(): Promise<port.StoreCounts> {
    const [sessions, queue] = await Promise.all([this.reads.sessions.counts(), this.reads.rows.queue()]);
    return { sessions, ...queue };
  }

  listWorkers(): Promise<port.WorkerInfo[]> {
    return listWorkers(this.#pool);
  }
}
