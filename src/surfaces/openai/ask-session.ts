import { createHash } from "node:crypto";
import { answerFromText, answerProblems } from "../../domain/answer.ts";
import { newId } from "../../domain/ids.ts";
import type { JsonObject } from "../../domain/json.ts";
import { isLive, type Session } from "../../domain/session.ts";
import type { ServerContext } from "../http/context.ts";
import type { AnswerIds } from "./answer-id.ts";
import { OpenAiError, refusedRequest } from "./openai-error.ts";
import { isTaskPrompt, type ParsedRequest } from "./request.ts";
import { findModel, type TalkingModel } from "./talking-models.ts";

export type OpenAiParts = Pick<ServerContext, "store" | "queue" | "events" | "catalog">;

/** A request's session, and what of the request it receives. */
export type Target = {
  session: Session;
  /** The conversation so far, for a session that does not have it. */
  earlier: ParsedRequest["earlier"];
  /** It is working on an earlier message: this one is guidance for that work. */
  is_guidance: boolean;
  /** Created for this request alone, and useless afterwards. */
  is_temporary: boolean;
};

/** The most ended sessions per conversation. */
const MOST_GENERATIONS = 100;

/** A request's session; created if there is none yet. */
export async function targetOf(parts: OpenAiParts, request: ParsedRequest, previous: Session | null): Promise<Target> {
  const model = await findModel(parts, request.model);
  const is_temporary = previous === null && isTaskPrompt(request);
  const existing =
    previous ?? (is_temporary || request.key === undefined ? null : await keyedSession(parts, model, request.key));
  if (existing && isUsable(existing)) {
    if (existing.status === "paused")
      throw new OpenAiError(
        409,
        `session ${existing.session_id} is paused; resume it in the console or with everstep resume`,
        "session_paused",
      );
    return { session: existing, earlier: [], is_guidance: existing.status === "running", is_temporary };
  }
  const session_id = is_temporary || request.key === undefined ? newId() : await freeId(parts, model, request.key);
  const session = await create(parts, model, session_id, request);
  const { instructions, earlier } = request;
  const unsent =
    instructions !== undefined && !model.takes_instructions ? [{ role: "user" as const, text: instructions }] : [];
  return { session, earlier: [...unsent, ...earlier], is_guidance: false, is_temporary };
}

const isUsable = ({ status }: Session): boolean => (isLive(status) && status !== "stopping") || status === "error";

/** The same on every server, so that a conversation continues wherever its next request arrives. */
const keyedId = ({ agent_id }: TalkingModel, key: string, generation: number): string => {
  const digest = createHash("sha256")
    .update(JSON.stringify([agent_id, key]))
    .digest("hex")
    .slice(0, 32);
  return `v1-${digest}${generation === 0 ? "" : `-${generation}`}`;
};

async function keyedSession({ store }: OpenAiParts, model: TalkingModel, key: string): Promise<Session | null> {
  for (let generation = 0; generation < MOST_GENERATIONS; generation += 1) {
    const session = await store.getSession(keyedId(model, key, generation));
    if (!session || isUsable(session)) return session;
  }
  return null;
}

async function freeId({ store }: OpenAiParts, model: TalkingModel, key: string): Promise<string> {
  for (let generation = 0; generation < MOST_GENERATIONS; generation += 1) {
    const id = keyedId(model, key, generation);
    if (!(await store.getSession(id))) return id;
  }
  return newId();
}

async function create(
  { queue, store }: OpenAiParts,
  model: TalkingModel,
  session_id: string,
  { instructions, user }: ParsedRequest,
): Promise<Session> {
  const { agent_id, moniker, takes_instructions } = model;
  const params: JsonObject = takes_instructions && instructions !== undefined ? { instructions } : {};
  const outcome = await queue.submit({
    action_type: "agent_create",
    agent_id,
    session_id,
    payload: { moniker, params },
    metadata: { surface: "openai", ...(user !== undefined && { user_id: user }) },
  });
  if (outcome.kind !== "accepted") throw refusedRequest(outcome);
  const session = await store.getSession(session_id);
  if (!session) throw new OpenAiError(500, "the session could not be created");
  return session;
}

/** Sends the message to the session. A text that answers its open question is sent as an answer, any other as a message. */
export async function sendMessage(
  { queue }: OpenAiParts,
  { session, earlier, is_guidance }: Target,
  { text, user }: ParsedRequest,
  note: JsonObject,
): Promise<AnswerIds> {
  const { session_id, question, status } = session;
  if (status === "error") {
    const resumed = await queue.submit({ action_type: "agent_resume", session_id });
    if (resumed.kind !== "accepted") throw refusedRequest(resumed);
  }
  const metadata = { openai: { ...note, is_guidance }, ...(user !== undefined && { user_id: user }) };
  const answer = question && status !== "running" ? answerFromText(question, text) : null;
  const isAnswer =
    question &&
    (question.choices ?? question.schema) &&
    answer !== null &&
    answerProblems(question, answer).length === 0;
  const input: JsonObject = {
    text,
    ...(user !== undefined && { user_id: user }),
    ...(earlier.length > 0 && { earlier }),
  };
  const outcome = await queue.submit(
    isAnswer
      ? { action_type: "agent_answer", session_id, payload: { answer, question_id: question.question_id }, metadata }
      : { action_type: "agent_input", session_id, payload: input, metadata },
  );
  if (outcome.kind !== "accepted") throw refusedRequest(outcome);
  return { session_id, action_id: outcome.action_id };
}
