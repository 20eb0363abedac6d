import type { FastifyReply, FastifyRequest } from "fastify";
import type { Action } from "../../domain/action.ts";
import { isObject, type JsonObject } from "../../domain/json.ts";
import { isLive, type Session } from "../../domain/session.ts";
import type { EventStream, EventStreams } from "../event-streams.ts";
import { type AnswerEvent, AnswerReader, type Usage } from "./answer-events.ts";
import { type AnswerIds, parseResponseId, responseId } from "./answer-id.ts";
import { GUIDANCE_NOTICE, openStream } from "./answer-notices.ts";
import { type OpenAiParts, sendMessage, targetOf } from "./ask-session.ts";
import { OpenAiError, refusedRequest } from "./openai-error.ts";
import { parseResponseRequest, type ResponseRequest } from "./request.ts";
import { after, LAST_EVENT, type ResponseEvent, ResponseItems } from "./response-events.ts";
import { whileWorking } from "./while-working.ts";

type Served = { parts: OpenAiParts; streams: EventStreams };
type StoredResponse = { ids: AnswerIds; action: Action };

/** Creates a response. In the background it returns at once; the agent works on either way. */
export async function createResponse(
  { parts, streams }: Served,
  { body, headers }: FastifyRequest<{ Body: ResponseRequest }>,
  reply: FastifyReply,
): Promise<unknown> {
  const request = parseResponseRequest(body, headers);
  const previous = body.previous_response_id ? await previousSession(parts, body.previous_response_id) : null;
  const target = await targetOf(parts, request, previous);
  const { session_id } = target.session;
  reply.header("x-everstep-session-id", session_id);
  if (target.is_guidance) reply.header("x-everstep-guidance", "true");
  const leaving = new AbortController();
  reply.raw.once("close", () => leaving.abort());
  const following = parts.events.follow({ session_id }, leaving.signal);
  try {
    const ids = await sendMessage(parts, target, request, noteOf(body));
    const stored = await findResponse(parts, responseId(ids));
    if (body.stream) {
      const stream = openStream(streams, reply);
      stream.gone.addEventListener("abort", () => leaving.abort(), { once: true });
      return await streamResponse(parts, stored, stream, { starting_after: -1, following });
    }
    if (body.background) return await whole(stored, new AnswerReader(parts, ids), noEvents());
    const reader = new AnswerReader(parts, ids);
    return await whileWorking(reply, whole(stored, reader, reader.read(leaving.signal, following)));
  } finally {
    leaving.abort();
    await following.return(undefined);
    if (target.is_temporary && !body.background) await parts.queue.submit({ action_type: "agent_destroy", session_id });
  }
}

async function* noEvents(): AsyncGenerator<AnswerEvent> {}

/** What a response needs besides the session's rows; stored with the action. */
const noteOf = ({ model, background, previous_response_id, metadata }: ResponseRequest): JsonObject => ({
  kind: "response",
  model,
  background: background ?? false,
  previous_response_id: previous_response_id ?? null,
  metadata: metadata ?? {},
});

async function findResponse({ store }: OpenAiParts, id: string): Promise<StoredResponse> {
  const ids = parseResponseId(id);
  const action = ids && (await store.getAction(ids.action_id));
  if (!ids || action?.session_id !== ids.session_id)
    throw new OpenAiError(404, `there is no response ${id}`, "not_found", "response_id");
  return { ids, action };
}

export async function retrieveResponse(
  { parts, streams }: Served,
  id: string,
  { stream, starting_after = -1 }: { stream?: boolean | undefined; starting_after?: number | undefined },
  reply: FastifyReply,
): Promise<unknown> {
  const stored = await findResponse(parts, id);
  const reader = new AnswerReader(parts, stored.ids);
  if (!stream) return whole(stored, reader, reader.soFar());
  return streamResponse(parts, stored, openStream(streams, reply), { starting_after });
}

/** Ends the answering session. A later request that refers to the response continues in a fork of it. */
export async function cancelResponse({ parts }: Served, id: string): Promise<unknown> {
  const stored = await findResponse(parts, id);
  const before = new AnswerReader(parts, stored.ids);
  const response = await whole(stored, before, before.soFar());
  if (response.status !== "in_progress") return response;
  const { session_id } = stored.ids;
  const outcome = await parts.queue.submit({
    action_type: "agent_destroy",
    session_id,
    payload: { reason: "the response was cancelled" },
  });
  if (outcome.kind !== "accepted") throw refusedRequest(outcome);
  const reader = new AnswerReader(parts, stored.ids);
  return whole(stored, reader, reader.read(AbortSignal.timeout(10_000)));
}

/** The session of an earlier response if it is still at that point, else a fork from there. */
async function previousSession(parts: OpenAiParts, id: string): Promise<Session> {
  const { ids } = await findResponse(parts, id);
  const { store, queue } = parts;
  const session = await store.getSession(ids.session_id);
  if (!session) throw new OpenAiError(404, `there is no response ${id}`, "not_found", "previous_response_id");
  let end: number | null = null;
  const first = (await store.getAction(ids.action_id))?.consumed_iteration ?? null;
  for await (const event of new AnswerReader(parts, ids).soFar()) {
    if (event.kind === "step" && first !== null) end = first + event.index;
    if (event.kind === "end") break;
  }
  const isLast = end === null || end === session.iteration;
  if (isLast && isLive(session.status) && session.status !== "stopping") return session;
  const iteration = end ?? session.iteration;
  if (iteration < 0)
    throw new OpenAiError(400, `response ${id} has no answer to continue from`, null, "previous_response_id");
  const outcome = await queue.submit({ action_type: "agent_fork", session_id: ids.session_id, payload: { iteration } });
  if (outcome.kind !== "accepted") throw refusedRequest(outcome);
  const fork = await store.getSession(outcome.session_id);
  if (!fork) throw new OpenAiError(500, "the session could not be forked");
  return fork;
}

type ResponseBody = ReturnType<typeof bodyOf>;

async function whole(
  stored: StoredResponse,
  reader: AnswerReader,
  events: AsyncIterable<AnswerEvent>,
): Promise<ResponseBody> {
  const items = new ResponseItems(stored.ids.action_id);
  if (isGuidance(stored)) items.notice(GUIDANCE_NOTICE);
  let end: Extract<AnswerEvent, { kind: "end" }> | null = null;
  for await (const event of events) {
    items.take(event);
    if (event.kind !== "end") continue;
    end = event;
    break;
  }
  return bodyOf(stored, items, reader.usage, end);
}

type StreamOptions = { starting_after: number; following?: Parameters<AnswerReader["read"]>[1] };

async function streamResponse(
  parts: OpenAiParts,
  stored: StoredResponse,
  out: EventStream,
  { starting_after, following }: StreamOptions,
): Promise<void> {
  const reader = new AnswerReader(parts, stored.ids);
  const items = new ResponseItems(stored.ids.action_id);
  const send = async (event: ResponseEvent) => {
    const unsent = after(event, starting_after);
    if (unsent) await out.send({ event: unsent.type, data: JSON.stringify(unsent) });
  };
  const begun = bodyOf(stored, items, reader.usage, null);
  await send({ type: "response.created", sequence_number: 0, response: begun });
  await send({ type: "response.in_progress", sequence_number: 1, response: begun });
  if (isGuidance(stored)) for (const event of items.notice(GUIDANCE_NOTICE)) await send(event);
  for await (const event of reader.read(out.gone, following)) {
    for (const one of items.take(event)) await send(one);
    if (event.kind !== "end") continue;
    const response = bodyOf(stored, items, reader.usage, event);
    // The API has no event for a cancelled response: the last event is `failed`, with the status `cancelled`.
    const type = event.outcome === "completed" ? "response.completed" : "response.failed";
    await send({ type, sequence_number: LAST_EVENT, response });
    break;
  }
  out.end();
}

const noteIn = ({ action: { metadata } }: StoredResponse): JsonObject =>
  isObject(metadata["openai"]) ? metadata["openai"] : {};
const isGuidance = (stored: StoredResponse): boolean => noteIn(stored)["is_guidance"] === true;

function bodyOf(
  stored: StoredResponse,
  { output }: ResponseItems,
  usage: Usage,
  end: Extract<AnswerEvent, { kind: "end" }> | null,
) {
  const { model, background, previous_response_id, metadata } = noteIn(stored);
  const status = end?.outcome ?? "in_progress";
  const { input_tokens, output_tokens, cached_tokens } = usage;
  return {
    id: responseId(stored.ids),
    object: "response",
    created_at: Math.floor(Date.parse(stored.action.created_at) / 1000),
    status,
    background: background ?? false,
    error: status === "failed" ? { code: "server_error", message: end?.error ?? "the agent did not answer" } : null,
    incomplete_details: null,
    instructions: null,
    metadata: metadata ?? {},
    model: model ?? stored.action.agent_id,
    output: [...output],
    output_text: output
      .flatMap((item) => (item.type === "message" ? item.content : []))
      .map((part) => (part as { text: string }).text)
      .join(""),
    parallel_tool_calls: true,
    previous_response_id: previous_response_id ?? null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: null,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: null,
    truncation: "disabled",
    usage:
      end === null
        ? null
        : {
            input_tokens,
            input_tokens_details: { cached_tokens },
            output_tokens,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: input_tokens + output_tokens,
          },
    user: null,
  };
}
