import type { FastifyReply, FastifyRequest } from "fastify";
import { newId } from "../../domain/ids.ts";
import type { EventStream, EventStreams } from "../event-streams.ts";
import { type AnswerEvent, AnswerReader, type Usage } from "./answer-events.ts";
import { GUIDANCE_NOTICE, openStream } from "./answer-notices.ts";
import { type OpenAiParts, sendMessage, type Target, targetOf } from "./ask-session.ts";
import { errorBody, OpenAiError } from "./openai-error.ts";
import { type ChatRequest, parseChatRequest } from "./request.ts";
import { whileWorking } from "./while-working.ts";

type Served = { parts: OpenAiParts; streams: EventStreams };

/** Answers a chat completion. If the client disconnects, the agent continues, and its answer is in the session. */
export async function chatCompletion(
  { parts, streams }: Served,
  { body, headers, log }: FastifyRequest<{ Body: ChatRequest }>,
  reply: FastifyReply,
): Promise<unknown> {
  const request = parseChatRequest(body, headers);
  const target = await targetOf(parts, request, null);
  const { session_id } = target.session;
  reply.header("x-everstep-session-id", session_id);
  if (target.is_guidance) reply.header("x-everstep-guidance", "true");
  const leaving = new AbortController();
  reply.raw.once("close", () => leaving.abort());
  const stream = body.stream ? openStream(streams, reply) : null;
  const following = parts.events.follow({ session_id }, stream?.gone ?? leaving.signal, stream?.budget);
  const completion = new Completion(body);
  try {
    const reader = new AnswerReader(parts, await sendMessage(parts, target, request, { kind: "chat" }));
    const events = reader.read(stream?.gone ?? leaving.signal, following);
    if (!stream) return await whileWorking(reply, completion.whole(events, reader.usage, target));
    await completion.stream(stream, events, reader.usage, target);
  } catch (error) {
    if (!stream) throw error;
    if (!(error instanceof OpenAiError)) log.error({ err: error }, "a chat completion failed");
    const problem = error instanceof OpenAiError ? error : new OpenAiError(500, "internal error");
    await stream.send({ data: JSON.stringify(errorBody(problem)) });
    stream.end();
  } finally {
    leaving.abort();
    await following.return(undefined);
    if (target.is_temporary) await parts.queue.submit({ action_type: "agent_destroy", session_id });
  }
}

class Completion {
  readonly #body: ChatRequest;
  readonly #id = `chatcmpl-${newId()}`;
  readonly #created = Math.floor(Date.now() / 1000);

  constructor(body: ChatRequest) {
    this.#body = body;
  }

  async whole(events: AsyncIterable<AnswerEvent>, usage: Usage, { is_guidance }: Target): Promise<object> {
    let content = "";
    const reasoning = is_guidance ? [GUIDANCE_NOTICE] : [];
    for await (const event of events) {
      if (event.kind === "text") content += event.text;
      if (event.kind === "tool") reasoning.push(`Using ${event.name}`);
      if (event.kind === "end" && event.outcome !== "completed") throw failed(event);
    }
    const message = {
      role: "assistant",
      content,
      refusal: null,
      ...(reasoning.length > 0 && { reasoning_content: reasoning.join("\n") }),
    };
    return {
      ...this.#head("chat.completion"),
      choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
      usage: usageOf(usage),
    };
  }

  async stream(
    out: EventStream,
    events: AsyncIterable<AnswerEvent>,
    usage: Usage,
    { is_guidance }: Target,
  ): Promise<void> {
    const send = (delta: object, finish_reason: string | null = null) =>
      out.send({
        data: JSON.stringify({
          ...this.#head("chat.completion.chunk"),
          choices: [{ index: 0, delta, logprobs: null, finish_reason }],
        }),
      });
    await send({ role: "assistant", content: "" });
    if (is_guidance) await send({ reasoning_content: `${GUIDANCE_NOTICE}\n` });
    for await (const event of events) {
      if (event.kind === "text") await send({ content: event.text });
      if (event.kind === "tool") await send({ reasoning_content: `Using ${event.name}\n` });
      if (event.kind === "end" && event.outcome !== "completed") throw failed(event);
    }
    await send({}, "stop");
    if (this.#body.stream_options?.include_usage)
      await out.send({
        data: JSON.stringify({ ...this.#head("chat.completion.chunk"), choices: [], usage: usageOf(usage) }),
      });
    await out.send({ data: "[DONE]" });
    out.end();
  }

  #head(object: string): object {
    return { id: this.#id, object, created: this.#created, model: this.#body.model };
  }
}

const failed = ({ error, outcome }: Extract<AnswerEvent, { kind: "end" }>): OpenAiError =>
  new OpenAiError(outcome === "cancelled" ? 409 : 500, error ?? "the agent did not answer", `agent_${outcome}`);

const usageOf = ({ input_tokens, output_tokens, cached_tokens }: Usage): object => ({
  prompt_tokens: input_tokens,
  completion_tokens: output_tokens,
  total_tokens: input_tokens + output_tokens,
  prompt_tokens_details: { cached_tokens },
});
