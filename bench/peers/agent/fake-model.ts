import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { News } from "../../runtime/news.ts";
import type { Interval } from "./overhead.ts";
import { answerOf, CALLS_OF_REPLY, FIRST_WORD_MS, REPLY_MS, sessionIn, sharedNow, TOOL } from "./script.ts";

type Message = { role: string; content?: unknown };
type ChatRequest = { messages: Message[]; tools?: { function: { name: string } }[]; stream?: boolean };
type Delta = { role?: string; content?: string; tool_calls?: object[] };
type Chunk = { delta: Delta; finish_reason: string | null };

/** A provider on loopback with OpenAI's chat completions API. It derives an agent's progress from the request alone. */
export class FakeModel implements AsyncDisposable {
  readonly #server: Server;
  readonly #news = new News();
  /** When each agent's calls were in progress, as the model saw it. */
  readonly calls = new Map<string, Interval[]>();

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: Error) => response.writeHead(500).end(error.message));
    });
  }

  static async open(): Promise<FakeModel> {
    const model = new FakeModel();
    model.#server.listen(0, "127.0.0.1");
    await once(model.#server, "listening");
    return model;
  }

  /** Resolves when each of them has called the model. */
  async untilAsked(session_ids: readonly string[]): Promise<void> {
    await this.#news.until("every agent calls the model", () => session_ids.every((id) => this.calls.has(id)));
  }

  /** How many agents have called so far. */
  get agents(): number {
    return this.calls.size;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const begun = sharedNow();
    const { messages, tools, stream } = JSON.parse(await textOf(request)) as ChatRequest;
    const session_id = messages
      .map(({ content }) => sessionIn(JSON.stringify(content ?? "")))
      .find((id) => id !== null);
    const tool = tools?.map(({ function: { name } }) => name).find((name) => name.endsWith(TOOL.name));
    if (!session_id || tool === undefined) throw new Error("this model knows one task and one tool");
    if (!this.calls.has(session_id)) this.calls.set(session_id, []);
    this.#news.tell();
    const reply = messages.filter(({ role }) => role === "assistant").length;
    // Some clients treat two replies with the same id as one message.
    const written = { id: `${session_id}-${reply}`, chunks: chunksOf(session_id, reply, tool) };
    await (stream ? streamed : whole)(response, written, begun);
    this.calls.get(session_id)?.push({ begun, ended: sharedNow() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const HEAD = { object: "chat.completion.chunk", created: 1_700_000_000, model: "bench" };
const eventOf = (id: string, rest: object): string => `data: ${JSON.stringify({ ...HEAD, id, ...rest })}\n\n`;
const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
const untilAfter = (begun: number, ms: number): Promise<void> => wait(Math.max(1, ms - (sharedNow() - begun)));

type Reply = { id: string; chunks: Chunk[] };

async function streamed(response: ServerResponse, { id, chunks }: Reply, begun: number): Promise<void> {
  const [first, ...others] = chunks.map((chunk) => eventOf(id, { choices: [{ index: 0, ...chunk }] }));
  response.writeHead(200, { "content-type": "text/event-stream" });
  await untilAfter(begun, FIRST_WORD_MS);
  response.write(first);
  await untilAfter(begun, REPLY_MS);
  response.end(`${others.join("")}${eventOf(id, { choices: [], usage: USAGE })}data: [DONE]\n\n`);
}

/** For clients that do not request a stream if nobody listens. */
async function whole(response: ServerResponse, { id, chunks }: Reply, begun: number): Promise<void> {
  const content = chunks.map(({ delta }) => delta.content ?? "").join("");
  const tool_calls = chunks.flatMap(({ delta }) => delta.tool_calls ?? []);
  const message = { role: "assistant", content, ...(tool_calls.length > 0 && { tool_calls }) };
  const choices = [{ index: 0, message, finish_reason: chunks.at(-1)?.finish_reason }];
  await untilAfter(begun, REPLY_MS);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ ...HEAD, id, object: "chat.completion", choices, usage: USAGE }));
}

/** The first chunk is the first word. */
function chunksOf(session_id: string, reply: number, tool: string): Chunk[] {
  const calls = CALLS_OF_REPLY[reply];
  if (calls === undefined) throw new Error(`${session_id} asks after the answer`);
  const made = CALLS_OF_REPLY.slice(0, reply).reduce((sum, count) => sum + count, 0);
  const words = calls === 0 ? answerOf(session_id) : `I shall count ${calls} calls.`;
  const [first = "", ...rest] = words.split(/(?<= )/);
  const said = (content: string): Chunk => ({ delta: { content }, finish_reason: null });
  const asked = Array.from({ length: calls }, (_, index): Chunk => {
    const call = { name: tool, arguments: JSON.stringify({ session_id, call: made + index }) };
    const id = `call_${session_id}_${made + index}`;
    return { delta: { tool_calls: [{ index, id, type: "function", function: call }] }, finish_reason: null };
  });
  const begin: Chunk = { delta: { role: "assistant", content: first }, finish_reason: null };
  return [begin, ...rest.map(said), ...asked, { delta: {}, finish_reason: calls === 0 ? "stop" : "tool_calls" }];
}
