import type { FastifyReply, FastifyRequest } from "fastify";
import type { Action } from "../../domain/action.ts";
import { isObject, type JsonObject } from "../../domain/json.ts";
import { isLive, type Session } from "../../domain/session.ts";
import type { EventStream, EventStreams } from "../event-streams.ts";
import { type AnswerEvent, AnswerReader, type Usage } from "./answer-events.ts";
import { type AnswerIds, parseResponseId, responseId } from "./answer-id.ts";
import { GUIDANCE_NOTICE, openStream } from "./answer-notices.ts";
import { type OpenAiParts, targetOf, tell } from "./ask-session.ts";
import { OpenAiError, refusedRequest } from "./openai-error.ts";
import { askedByResponse, type ResponseRequest } from "./request.ts";
import { after, LAST_EVENT, type ResponseEvent, ResponseItems } from "./response-events.ts";
import { whileWorking } from "./while-working.ts";

type Served = { parts: OpenAiParts; streams: EventStreams };
type Known = { ids: AnswerIds; action: Action };

/** Makes a response. In the background it is answered at once; the agent works on either way, whoever waits for it. */
export async function createResponse(
  { parts, streams }: Served,
  { body, headers }: FastifyRequest<{ Body: ResponseRequest }>,
  reply: FastifyReply,
): Promise<unknown> {
  const asked = askedByResponse(body, headers);
  const previous = body.previous_response_id ? await previousSession(parts, body.previous_response_id) : null;
  const target = await targetOf(parts, asked, previous);
  const { session_id } = target.session;
  reply.header("x-everstep-session-id", session_id);
  if (target.is_guidance) reply.header("x-everstep-guidance", "true");
  const leaving = new AbortController();
  reply.raw.once("close", () => leaving.abort());
  const following = parts.events.follow({ session_id }, leaving.signal);
  try {
    const ids = await tell(parts, target, asked, noteOf(body));
    const known = await findResponse(parts, responseId(ids));
    if (body.stream) {
      const stream = openStream(streams, reply);
      stream.gone.addEventListener("abort", () => leaving.abort(), { once: true });
      return await streamResponse(parts, known, stream, { starting_after: -1, following });
    }
    if (body.background) return await whole(known, new AnswerReader(parts, ids), noEvents());
    const reader = new AnswerReader(parts, ids);
    return await whileWorking(reply, whole(known, reader, reader.read(leaving.signal, following)));
  } finally {
    leaving.abort();
    await following.return(undefined);
    if (target.is_passing && !body.background) await parts.queue.submit({ action_type: "agent_destroy", session_id });
  }
}

async function* noEvents(): AsyncGenerator<AnswerEvent> {}

/** What a response is made of beside the session's rows; kept with the action. */
const noteOf = ({ model, background, previous_response_id, metadata }: ResponseRequest): JsonObject => ({
  kind: "response",
  model,
  background: background ?? false,
  previous_response_id: previous_response_id ?? null,
  metadata: metadata ?? {},
});

async function findResponse({ store }: OpenAiParts, id: string): Promise<Known> {
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
  const known = await findResponse(parts, id);
  const reader = new AnswerReader(parts, known.ids);
  if (!stream) return whole(known, reader, reader.soFar());
  return streamResponse(parts, known, openStream(streams, reply), { starting_after });
}

/** Ends the session that answers. A later request that names the response goes on in a copy of it. */
export async function cancelResponse({ parts }: Served, id: string): Promise<unknown> {
  const known = await findResponse(parts, id);
  const before = new AnswerReader(parts, known.ids);
  const response = await whole(known, before, before.soFar());
  if (response.status !== "in_progress") return response;
  const { session_id } = known.ids;
  const outcome = await parts.queue.submit({
    action_type: "agent_destroy",
    session_id,
    payload: { reason: "the response was cancelled" },
  });
  if (outcome.kind !== "accepted") throw refusedRequest(outcome);
  const reader = new AnswerReader(parts, known.ids);
  return whole(known, reader, reader.read(AbortSignal.timeout(10_000)));
}

/** The session where an earlier response stands last, or a copy of it from there where it went on or has ended. */
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
    throw new OpenAiError(
      400,
      `response ${id} came to nothing, so there is nothing to go on from`,
      null,
      "previous_response_id",
    );
  const outcome = await queue.submit({ action_type: "agent_fork", session_id: ids.session_id, payload: { iteration } });
  if (outcome.kind !== "accepted") throw refusedRequest(outcome);
  const fork = await store.getSession(outcome.session_id);
  if (!fork) throw new OpenAiError(500, "the session could not be copied");
  return fork;
}

type ResponseBody = ReturnType<typeof bodyOf>;

async function whole(known: Known, reader: AnswerReader, events: AsyncIterable<AnswerEvent>): Promise<ResponseBody> {
  const items = new ResponseItems(known.ids.action_id);
  if (isGuidance(known)) items.notice(GUIDANCE_NOTICE);
  let end: Extract<AnswerEvent, { kind: "end" }> | null = null;
  for await (const event of events) {
    items.take(event);
    if (event.kind !== "end") continue;
    end = event;
    break;
  }
  return bodyOf(known, items, reader.usage, end);
}

type StreamOptions = { starting_after: number; following?: Parameters<AnswerReader["read"]>[1] };

async function streamResponse(
  parts: OpenAiParts,
  known: Known,
  out: EventStream,
  { starting_after, following }: StreamOptions,
): Promise<void> {
  const reader = new AnswerReader(parts, known.ids);
  const items = new ResponseItems(known.ids.action_id);
  const send = async (event: ResponseEvent) => {
    const untold = after(event, starting_after);
    if (untold) await out.send({ event: untold.type, data: JSON.stringify(untold) });
  };
  const begun = bodyOf(known, items, reader.usage, null);
  await send({ type: "response.created", sequence_number: 0, response: begun });
  await send({ type: "response.in_progress", sequence_number: 1, response: begun });
  if (isGuidance(known)) for (const event of items.notice(GUIDANCE_NOTICE)) await send(event);
  for await (const event of reader.read(out.gone, following)) {
    for (const told of items.take(event)) await send(told);
    if (event.kind !== "end") continue;
    const response = bodyOf(known, items, reader.usage, event);
    // The stream has no event for a response that was cancelled: its last one is that it failed, with that status.
    const type = event.outcome === "completed" ? "response.completed" : "response.failed";
    await send({ type, sequence_number: LAST_EVENT, response });
    break;
  }
  out.end();
}

const noteIn = ({ action: { metadata } }: Known): JsonObject =>
  isObject(metadata["openai"]) ? metadata["openai"] : {};
const isGuidance = (known: Known): boolean => noteIn(known)["is_guidance"] === true;

function bodyOf(
  known: Known,
  { output }: ResponseItems,
  usage: Usage,
  end: Extract<AnswerEvent, { kind: "end" }> | null,
) {
  const { model, background, previous_response_id, metadata } = noteIn(known);
  const status = end?.outcome ?? "in_progress";
  const { input_tokens, output_tokens, cached_tokens } = usage;
  return {
    id: responseId(known.ids),
    object: "response",
    created_at: Math.floor(Date.parse(known.action.created_at) / 1000),
    status,
    background: background ?? false,
    error: status === "failed" ? { code: "server_error", message: end?.error ?? "the agent did not answer" } : null,
    incomplete_details: null,
    instructions: null,
    metadata: metadata ?? {},
    model: model ?? known.action.agent_id,
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
