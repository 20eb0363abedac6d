import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { safeToolName } from "../../src/monikers/llm/tool-names.ts";
import { WIRE_FORMATS } from "../../test/llm/wire-formats.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { startEverstep } from "../server/everstep-process.ts";
import { postRequest, sendChecked } from "../server/kept-connection.ts";
import { summarize } from "../stats.ts";

const WARM_UP = 10;
const USAGE = { input: 100, output: 10 };

/**
 * Between the end of a model's reply and the next model call are the rest of one `think`, a whole `act` with a tool that takes
 * no time, and the beginning of the next `think`: two steps.
 */
export async function measureLoop({ folder, quick }: BenchContext): Promise<Figure[]> {
  const turns = quick ? 50 : 300;
  const figures: Figure[] = [];
  for (const kb of [1, 500]) {
    const { p50, p99 } = summarize(await overheads(join(folder, `model-loop-${kb}`), kb, turns));
    const name = `a think or act step with a state of ${kb} KB: time beside the model's and the tool's own`;
    figures.push(
      { figure: `${name}, p50`, measured: p50, unit: "ms", bar: atMost(5) },
      { figure: `${name}, p99`, measured: p99, unit: "ms", bar: atMost(15) },
    );
  }
  return figures;
}

/** A model that calls a tool in every turn, until it has done so `turns` times. */
async function openModel(turns: number) {
  const times: { came: number; replied: number }[] = [];
  const done = Promise.withResolvers<void>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const came = performance.now();
    // The request's content does not matter here, and keeping it would create garbage that delays the next timestamp.
    await finished(request.resume(), { writable: false });
    const isLast = times.length >= turns;
    const call = { id: `call-${times.length}`, name: safeToolName("time/now"), args: "{}" };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(WIRE_FORMATS.openai.turn(isLast ? { text: "done", usage: USAGE } : { calls: [call], usage: USAGE }));
    times.push({ came, replied: performance.now() });
    if (isLast) done.resolve();
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    times,
    done: done.promise,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function overheads(folder: string, kb: number, turns: number): Promise<number[]> {
  await using model = await openModel(WARM_UP + turns);
  // A model name whose context window fits the larger state.
  await using everstep = await startEverstep(folder, { EVERSTEP_MODEL: "openai/gpt-4.1", OPENAI_BASE_URL: model.url });
  const { connection } = everstep;
  const params = { task: "x".repeat(Math.min(kb, 190) * 1024), tools: ["time/now"] };
  const { session_id } = await sendChecked<{ session_id: string }>(
    connection,
    postRequest("/api/agents", { agent_id: "bench", moniker: "agent", params }),
  );
  for (let left = kb - 190; left > 0; left -= 155) {
    const guidance = "y".repeat(Math.min(left, 155) * 1024);
    await sendChecked(connection, postRequest(`/api/sessions/${session_id}/interrupt`, { guidance }));
  }
  await model.done;
  const { times } = model;
  return times.slice(WARM_UP, -1).map(({ replied }, index) => ((times[WARM_UP + index + 1]?.came ?? 0) - replied) / 2);
}
