import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { clerkTurn, type ModelInput, type RequestedCall } from "./scripted-clerk.ts";

const requestSchema = z.object({
  messages: z.array(
    z.object({
      role: z.enum(["system", "user", "assistant", "tool"]),
      content: z.union([z.string(), z.array(z.object({ text: z.string().default("") }))]).nullish(),
    }),
  ),
  tools: z.array(z.object({ function: z.object({ name: z.string() }) })).default([]),
});
type ModelRequest = z.infer<typeof requestSchema>;

/** The demo's model provider: OpenAI's chat completions on loopback, answered by a script. */
export class ScriptedModel implements AsyncDisposable {
  readonly #server: Server;
  readonly #word_ms: number;
  /** Calls that were answered completely. */
  answered = 0;

  private constructor(server: Server, word_ms: number) {
    this.#server = server;
    this.#word_ms = word_ms;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  /** `word_ms`: the delay between two words of an answer. */
  static async open({ word_ms }: { word_ms: number }): Promise<ScriptedModel> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ScriptedModel(server, word_ms);
  }

  /** The environment that makes a server use it. */
  get environment(): Record<string, string> {
    const { port } = this.#server.address() as AddressInfo;
    return {
      EVERSTEP_MODEL: "openai/scripted",
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_API_KEY: "none-needed",
      OPENAI_API: "chat",
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const prompt = requestSchema.parse(await json(request));
    const { text, calls } = clerkTurn(prompt.messages.map(toInput));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const word of text.split(/(?<= )/)) {
      response.write(chunk({ content: word }));
      await wait(this.#word_ms);
    }
    for (const [index, requested] of calls.entries())
      response.write(chunk({ tool_calls: [callOf(requested, index, prompt)] }));
    response.write(chunk({}, calls.length > 0 ? "tool_calls" : "stop"));
    response.end("data: [DONE]\n\n");
    await once(response, "close");
    if (response.writableFinished) this.answered += 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

const toInput = ({ role, content }: ModelRequest["messages"][number]): ModelInput => ({
  role,
  text: typeof content === "string" ? content : (content ?? []).map(({ text }) => text).join(""),
});

/** Tool names arrive in the form OpenAI accepts: `files_read` for `files/read`. */
function callOf({ tool, args }: RequestedCall, index: number, { messages, tools }: ModelRequest): object {
  const plain = (name: string): string => name.replaceAll(/[^a-z]+/gi, "_");
  const name = tools.map((one) => one.function.name).find((one) => plain(one) === plain(tool)) ?? tool;
  const id = `call_${messages.length}_${index}`;
  return { index, id, type: "function", function: { name, arguments: JSON.stringify(args) } };
}

const chunk = (delta: object, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({
    id: "scripted",
    object: "chat.completion.chunk",
    created: Math.floor(Date.now() / 1000),
    model: "scripted",
    choices: [{ index: 0, delta, finish_reason }],
  })}\n\n`;
