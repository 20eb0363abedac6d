import { join } from "node:path";
import OpenAI from "openai";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { startEverstep } from "../server/everstep-process.ts";
import { Follower } from "../server/follower.ts";
import { summarize } from "../stats.ts";

const WARM_UP = 20;
const KEPT = { headers: { "X-Conversation-Id": "bench" } };

/** The same reply over both APIs, in one process: how much later its first text arrives over `/v1`. */
export async function measureFirstText({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using server = await startEverstep(join(folder, "first-text"));
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: "none", maxRetries: 0 });
  const ask = (content: string) =>
    client.chat.completions.create({ model: "echo", messages: [{ role: "user", content }], stream: true }, KEPT);
  const session_id = await sessionOf(client);
  using follower = await Follower.connect(server.port);
  await follower.subscribe({ session_id });
  const later: number[] = [];
  const whole: number[] = [];
  for (let index = -WARM_UP; index < (quick ? 50 : 200); index++) {
    const bySocket = new Promise<number>((resolve) =>
      follower.socket.once("agent_step_delta", () => resolve(performance.now())),
    );
    const begun = performance.now();
    let first: number | undefined;
    for await (const chunk of await ask(`try ${index}`))
      if (chunk.choices[0]?.delta.content) first ??= performance.now();
    if (first === undefined) throw new Error("no text came");
    if (index < 0) continue;
    later.push(first - (await bySocket));
    whole.push(first - begun);
  }
  const difference = summarize(later);
  return [
    { figure: "first text by /v1 after the socket, p50", measured: difference.p50, unit: "ms", bar: atMost(5) },
    { figure: "first text by /v1 after the socket, p99", measured: difference.p99, unit: "ms", bar: null },
    { figure: "request by /v1 to its first text, p50", measured: summarize(whole).p50, unit: "ms", bar: null },
  ];
}

async function sessionOf(client: OpenAI): Promise<string> {
  const { response } = await client.chat.completions
    .create({ model: "echo", messages: [{ role: "user", content: "first" }] }, KEPT)
    .withResponse();
  return response.headers.get("x-everstep-session-id") ?? "";
}
