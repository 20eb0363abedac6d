import { setTimeout as wait } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AgentApi } from "../../src/agent-api/agent-api.ts";
import type { Random } from "../../test/store/random.ts";
import { within } from "../../test/within.ts";

/** The agent of every session that guests start. */
export const GUESTS = "guests";

export type Surface = "v1" | "mcp" | "agent-api";
/** What a guest was told: which session answered, and the answer, where known. */
export type GuestAnswer = { surface: Surface; session_id: string | null; said: string; answer: string | null };

const PAUSE_MS = 200;
const PATIENCE_MS = 10_000;

/**
 * People who use OpenAI's API, MCP and the one-chat WebSocket. Each asks one question after another and keeps the answers.
 */
export class Guests {
  readonly answers: GuestAnswer[] = [];
  readonly counts: Record<`${Surface}_answered` | `${Surface}_failed`, number> = {
    v1_answered: 0,
    v1_failed: 0,
    mcp_answered: 0,
    mcp_failed: 0,
    "agent-api_answered": 0,
    "agent-api_failed": 0,
  };
  readonly #urls: readonly string[];
  readonly #random: Random;

  constructor(urls: readonly string[], random: Random) {
    this.#urls = urls;
    this.#random = random;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#repeat("v1", signal, (said) => this.#complete(said)),
      this.#repeat("mcp", signal, (said) => this.#start(said)),
      this.#repeat("agent-api", signal, (said) => this.#chat(said)),
    ]);
  }

  /** Any request may fail while things break; only answered ones count. */
  async #repeat(surface: Surface, signal: AbortSignal, ask: (said: string) => Promise<GuestAnswer>): Promise<void> {
    for (let n = 0; !signal.aborted; n += 1) {
      try {
        this.answers.push(await within(PATIENCE_MS, ask(`${surface} guest ${n}`), () => "no answer"));
        this.counts[`${surface}_answered`] += 1;
      } catch {
        this.counts[`${surface}_failed`] += 1;
      }
      await wait(PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #complete(said: string): Promise<GuestAnswer> {
    const response = await fetch(`${this.#random.pick(this.#urls)}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: GUESTS, messages: [{ role: "user", content: said }] }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (!response.ok) throw new Error(await response.text());
    const body = (await response.json()) as { choices: [{ message: { content: string } }] };
    const session_id = response.headers.get("x-everstep-session-id");
    return { surface: "v1", session_id, said, answer: body.choices[0].message.content };
  }

  async #start(session_id: string): Promise<GuestAnswer> {
    const client = new Client({ name: "torture", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${this.#random.pick(this.#urls)}/mcp`)));
    try {
      const args = { moniker: "count", agent_id: GUESTS, session_id, params: { to: 2 } };
      const { isError } = await client.callTool({ name: "start_agent", arguments: args });
      if (isError) throw new Error("it was not started");
      return { surface: "mcp", session_id, said: session_id, answer: null };
    } finally {
      await client.close().catch(() => {});
    }
  }

  async #chat(said: string): Promise<GuestAnswer> {
    const url = `${this.#random.pick(this.#urls).replace(/^http/, "ws")}/agent_ws/`;
    const api = new AgentApi("agent", url);
    try {
      await api.connect();
      let answer = "";
      for await (const piece of api.sendMessage(said, { request_id: said })) answer += piece;
      return { surface: "agent-api", session_id: null, said, answer };
    } finally {
      await api.close();
    }
  }
}
