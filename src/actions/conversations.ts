import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { KeyedMutex } from "../concurrency/mutex.ts";
import { type Action, newAction } from "../domain/action.ts";
import { type Conversation, conversationStatusSchema, type Message, type Participant } from "../domain/conversation.ts";
import { jsonBytes } from "../domain/guidance-amount.ts";
import { idSchema, newId, now } from "../domain/ids.ts";
import { type JsonObject, jsonSchema } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { Store } from "../store/store.ts";
import { inRequestSpan } from "../tracing/request-spans.ts";
import type { ActionQueue } from "./action-queue.ts";
import { GuidanceLimit } from "./guidance-limit.ts";
import { invalidField, type Refusal } from "./refusal.ts";
import { alreadyInConversation } from "./types/join.ts";

/** How long to wait for a session owned by another worker to join, in milliseconds. */
const LONGEST_BINDING_MS = 5000;
const BINDING_CHECK_MS = 20;

export const newConversationSchema = z.object({
  conversation_id: idSchema.optional(),
  title: z.string().max(500).nullish(),
  created_by: z.string().max(200).nullish(),
  tags: z.array(z.string().min(1).max(100)).max(50).optional(),
});

export const conversationPatchSchema = z.object({
  title: z.string().max(500).nullable().optional(),
  status: conversationStatusSchema.optional(),
  tags: z.array(z.string().min(1).max(100)).max(50).optional(),
});

export const newParticipantSchema = z
  .object({
    user_id: idSchema.optional(),
    agent_id: idSchema.optional(),
    session_id: idSchema.optional(),
    role: z.string().min(1).max(100).nullish(),
  })
  .refine(
    ({ user_id, session_id }) => (user_id === undefined) !== (session_id === undefined),
    "give either user_id, or agent_id and session_id",
  );

export const newMessageSchema = z.object({
  user_id: idSchema,
  text: z.string().min(1).max(500_000),
  data: jsonSchema.optional(),
  message_id: idSchema.optional(),
  /** The sessions addressed; by default every session in the conversation. */
  to: z.array(idSchema).max(1000).optional(),
  /** `now` aborts running steps, `next` waits for them. */
  mode: z.enum(["next", "now"]).optional(),
});

type ConversationPatch = z.infer<typeof conversationPatchSchema>;
type NewConversation = z.infer<typeof newConversationSchema>;
type NewParticipant = z.infer<typeof newParticipantSchema>;
type NewMessage = z.infer<typeof newMessageSchema>;

type Joined = { kind: "joined"; participant: Participant };
export type Posted = { kind: "posted"; message: Message };

/** The only way to write conversations, participants and messages. People's messages reach sessions as actions. */
export class Conversations {
  readonly #store: Store;
  /** Guards each read-modify-write of a whole row. */
  readonly #mutexes = new KeyedMutex();
  readonly #queue: Pick<ActionQueue, "submit" | "traceRequest">;
  readonly #limit: GuidanceLimit;

  constructor(store: Store, queue: Pick<ActionQueue, "submit" | "traceRequest">, limit = new GuidanceLimit(store)) {
    this.#store = store;
    this.#queue = queue;
    this.#limit = limit;
  }

  /** One at a time, in this process and among all processes that share the store. */
  #exclusively<Result>(conversation_id: string, work: () => Promise<Result>): Promise<Result> {
    return this.#mutexes.run(
      conversation_id,
      () => this.#store.withLock?.(`conversation ${conversation_id}`, work) ?? work(),
    );
  }

  /** Idempotent: the same id again returns the existing conversation. */
  async create({ conversation_id, title, created_by, tags }: NewConversation): Promise<Conversation> {
    const conversation: Conversation = {
      conversation_id: conversation_id ?? newId(),
      title: title ?? null,
      created_by: created_by ?? null,
      status: "open",
      tags: tags ?? [],
      created_at: now(),
    };
    const outcome = await this.#store.commit({ conversations: [{ kind: "create", conversation }] });
    if (outcome.kind === "committed") return conversation;
    return (await this.#store.getConversation(conversation.conversation_id)) ?? conversation;
  }

  async change(conversation_id: string, patch: ConversationPatch): Promise<Conversation | null> {
    return this.#exclusively(conversation_id, () => this.#changeNow(conversation_id, patch));
  }

  async #changeNow(conversation_id: string, patch: ConversationPatch): Promise<Conversation | null> {
    const current = await this.#store.getConversation(conversation_id);
    if (!current) return null;
    const changes = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
    const conversation: Conversation = { ...current, ...changes };
    await this.#store.commit({ conversations: [{ kind: "update", conversation }] });
    return conversation;
  }

  /** Whoever joined before keeps the same participant row, with the new role. */
  async join(conversation_id: string, request: NewParticipant): Promise<Joined | Refusal> {
    return this.#exclusively(conversation_id, () => this.#joinNow(conversation_id, request));
  }

  async #joinNow(conversation_id: string, request: NewParticipant): Promise<Joined | Refusal> {
    if (!(await this.#store.getConversation(conversation_id))) return { kind: "unknown", what: "conversation" };
    const session = request.session_id === undefined ? null : await this.#store.getSession(request.session_id);
    if (request.session_id !== undefined && (!session || (request.agent_id ?? session.agent_id) !== session.agent_id))
      return { kind: "unknown", what: "session" };
    const refusal = session && (await this.#bind(session, conversation_id));
    if (refusal) return refusal;
    const present = (await this.#present(conversation_id)).find(
      ({ user_id, session_id }) => (request.user_id ?? null) === user_id && (request.session_id ?? null) === session_id,
    );
    const participant: Participant = {
      ...newParticipant(conversation_id, request, session),
      ...present,
      role: request.role ?? present?.role ?? null,
    };
    await this.#store.commit({ participants: [participant] });
    return { kind: "joined", participant };
  }

  /** A session that joins posts there from its next step on. An ended session is only listed. */
  async #bind(session: Session, conversation_id: string): Promise<Refusal | null> {
    const { session_id } = session;
    if (session.conversation_id === conversation_id || session.status === "done" || session.status === "stopped")
      return null;
    if (session.conversation_id !== null) return { kind: "conflict", detail: alreadyInConversation(session) };
    const outcome = await this.#queue.submit({ action_type: "agent_join", session_id, payload: { conversation_id } });
    if (outcome.kind !== "accepted") return outcome;
    for (const deadline = Date.now() + LONGEST_BINDING_MS; Date.now() < deadline; await wait(BINDING_CHECK_MS)) {
      const action = await this.#store.getAction(outcome.action_id);
      if (action?.processed) return action.outcome === "ok" ? null : { kind: "conflict", detail: action.error ?? "" };
    }
    // Timed out: it joins when its worker is back.
    return null;
  }

  async leave(conversation_id: string, participant_id: string): Promise<boolean> {
    return this.#exclusively(conversation_id, () => this.#leaveNow(conversation_id, participant_id));
  }

  async #leaveNow(conversation_id: string, participant_id: string): Promise<boolean> {
    const participant = await this.#store.getParticipant(participant_id);
    if (participant?.conversation_id !== conversation_id) return false;
    if (participant.left_at === null) await this.#store.commit({ participants: [{ ...participant, left_at: now() }] });
    return true;
  }

  /**
   * Idempotent: a message sent before gets the same answer, even if it could no longer be sent. If one addressed session has no
   * room, the message is not stored and no session gets it.
   */
  post(conversation_id: string, request: NewMessage): Promise<Posted | Refusal> {
    return inRequestSpan(this.#queue.traceRequest, { action_type: "message" }, (metadata = {}) =>
      this.#post(conversation_id, request, metadata),
    );
  }

  async #post(conversation_id: string, request: NewMessage, metadata: JsonObject): Promise<Posted | Refusal> {
    const outcome = await this.#postNew(conversation_id, request, metadata);
    if (outcome.kind === "posted" || request.message_id === undefined) return outcome;
    const first = await this.#store.getMessage(request.message_id);
    return first?.conversation_id === conversation_id ? { kind: "posted", message: first } : outcome;
  }

  /** Stores the message and queues it for every addressed session in one commit. The sender joins with it. */
  async #postNew(conversation_id: string, request: NewMessage, metadata: JsonObject): Promise<Posted | Refusal> {
    if ((await this.#present(conversation_id)).some(({ user_id }) => user_id === request.user_id))
      return this.#postFrom(conversation_id, request, { participants: [], metadata });
    return this.#exclusively(conversation_id, async () => {
      const isPresent = (await this.#present(conversation_id)).some(({ user_id }) => user_id === request.user_id);
      const participants = isPresent ? [] : [newParticipant(conversation_id, request, null)];
      return this.#postFrom(conversation_id, request, { participants, metadata });
    });
  }

  async #postFrom(
    conversation_id: string,
    request: NewMessage,
    { participants, metadata }: { participants: Participant[]; metadata: JsonObject },
  ): Promise<Posted | Refusal> {
    const conversation = await this.#store.getConversation(conversation_id);
    if (!conversation) return { kind: "unknown", what: "conversation" };
    if (conversation.status === "archived")
      return { kind: "conflict", detail: "the conversation is archived; open it to write in it" };
    const sessions = await this.#addressed(conversation_id, request.to);
    if ("kind" in sessions) return sessions;
    const message_id = request.message_id ?? newId();
    const actions = sessions.map((session) =>
      this.#delivery(session, request, { ...metadata, message_id, conversation_id }),
    );
    const message: Message = {
      message_id,
      conversation_id,
      created_at: now(),
      sender_type: "user",
      user_id: request.user_id,
      agent_id: null,
      session_id: null,
      text: request.text,
      data: request.data ?? null,
      status: null,
      event_type: "message",
      iteration: null,
      step_token: null,
      next_step_token: null,
      notes: null,
      action_ids: actions.map(({ action_id }) => action_id),
    };
    const rooms = await Promise.all(
      actions.map(({ session_id, payload }) => this.#limit.take(session_id, jsonBytes(payload))),
    );
    const full = rooms.find((room) => room.kind === "full");
    if (full) {
      for (const room of rooms) if (room.kind === "room") room.written();
      return full;
    }
    const outcome = await this.#store.commit({ messages: [message], actions, participants }).finally(() => {
      for (const room of rooms) if (room.kind === "room") room.written();
    });
    if (outcome.kind === "committed") return { kind: "posted", message };
    return { kind: "conflict", detail: `message ${message_id} is in another conversation` };
  }

  async #present(conversation_id: string): Promise<Participant[]> {
    return (await this.#store.listParticipants(conversation_id)).filter(({ left_at }) => left_at === null);
  }

  /** The sessions named in `to`, or every session in the conversation that has not ended. */
  async #addressed(conversation_id: string, to: string[] | undefined): Promise<Session[] | Refusal> {
    const present = (await this.#present(conversation_id)).flatMap(({ session_id }) => session_id ?? []);
    const stranger = to?.find((id) => !present.includes(id));
    if (stranger !== undefined) return invalidField("to", `session ${stranger} is not in the conversation`);
    const rows = await Promise.all([...new Set(to ?? present)].map((id) => this.#store.getSession(id)));
    const sessions = rows.filter((session) => session !== null);
    return to ? sessions : sessions.filter(({ status }) => status !== "done" && status !== "stopped");
  }

  #delivery(
    { agent_id, session_id }: Session,
    { user_id, text, data, mode }: NewMessage,
    metadata: JsonObject & { message_id: string; conversation_id: string },
  ): Action {
    const { message_id, conversation_id } = metadata;
    const guidance: JsonObject = {
      text,
      ...(data === undefined ? {} : { data }),
      user_id,
      message_id,
      conversation_id,
    };
    if (mode === "now")
      return newAction({ action_type: "agent_interrupt", agent_id, session_id, payload: { guidance, mode }, metadata });
    return newAction({ action_type: "agent_input", agent_id, session_id, payload: guidance, metadata });
  }
}

const newParticipant = (
  conversation_id: string,
  { user_id }: Pick<NewParticipant, "user_id">,
  session: Session | null,
): Participant => ({
  participant_id: newId(),
  conversation_id,
  user_id: user_id ?? null,
  agent_id: session?.agent_id ?? null,
  session_id: session?.session_id ?? null,
  role: null,
  joined_at: now(),
  left_at: null,
});
