import type { JsonObject } from "../../src/domain/json.ts";
import { ModelServer } from "../../test/llm/model-server.ts";
import { askedToStop, say } from "../runtime/child.ts";
import { randomText, seededRandom } from "../stats.ts";

/** The address it listens on, then for each call how long the model itself took, in milliseconds. */
export type ModelMessage = { url: string } | { own_ms: number };

/** Roughly the size of one event in a provider's stream. */
const PIECE = 64;
const NOTE = 200;

const [bytes = 0] = process.argv.slice(2).map(Number);

/** A provider whose model returns a complete, slightly changed state of that size each time. */
await using server = await ModelServer.open();
const random = seededRandom(1);
const notes = Array.from({ length: Math.ceil(bytes / NOTE) }, (_, id) => ({ id, note: randomText(random, NOTE - 24) }));
let calls = 0;
server.otherwise(async (call) => {
  const begun = performance.now();
  const state: JsonObject = { calls: ++calls, notes };
  await call.reply(JSON.stringify({ text: `This was call ${calls}.`, next_step: String(calls), state }), {
    piece: PIECE,
  });
  say({ own_ms: performance.now() - begun });
});
say({ url: server.url });
await askedToStop();
