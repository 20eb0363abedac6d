import type { ModelMessage } from "../../src/monikers/llm/model-turn.ts";
import { KEY, Listener, modelAt, newLlm } from "../../test/llm/llm-fixture.ts";
import { WIRE_FORMATS, type WireFormatName } from "../../test/llm/wire-formats.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { Child } from "../runtime/child.ts";
import { summarize } from "../stats.ts";
import type { TurnMessage } from "./turn-process.ts";

const KB = 1024;
const SIZES = [2 * KB, 500 * KB];
const FORMATS = Object.keys(WIRE_FORMATS) as WireFormatName[];
const WARM_UP = 30;
const TOOL = {
  name: "files/read",
  description: "Reads a file.",
  input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
};

/** Turns alternate with the same request by `fetch`, so that both run under the same conditions. */
export async function measureTurns({ quick }: BenchContext): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const format of FORMATS)
    for (const bytes of SIZES) figures.push(...(await measureFormat(format, bytes, quick ? 60 : 300)));
  return figures;
}

async function measureFormat(format: WireFormatName, bytes: number, turns: number): Promise<Figure[]> {
  await using server = new Child<TurnMessage>("../model/turn-process.ts", []);
  const first = await server.next();
  if (!("url" in first)) throw new Error("the model did not say where it is");
  const model = modelAt({ url: first.url }, format);
  const llm = newLlm(model);
  const messages = conversation(bytes);
  const ask = () => llm.generate({ instructions: "Be brief.", messages, tools: [TOOL] }, new Listener());
  await ask();
  const sent = await server.next();
  if (!("body" in sent)) throw new Error("the model did not tell what it was asked");
  const request = { method: "POST", body: sent.body, headers: { ...headersOf(format), "x-bench": "1" } };
  const plain = async () => {
    const response = await fetch(urlOf(first.url, format), request);
    // A refusal would be faster than the reply, and no fair comparison.
    if (!response.ok) throw new Error(`the yardstick of ${format} was answered ${response.status}`);
    return response.text();
  };
  const [own, total]: [number[], number[]] = [[], []];
  for (let turn = -WARM_UP; turn < turns; turn++) {
    const times = [await timed(plain), await timed(ask)] as const;
    if (turn < 0) continue;
    own.push(times[0]);
    total.push(times[1]);
  }
  await server.stop();
  const name = `${format}, ${bytes / KB} KB of conversation`;
  const [fetched, asked] = [summarize(own), summarize(total)];
  return [
    {
      figure: `${name}: a turn beside the same request by fetch, p50`,
      measured: asked.p50 - fetched.p50,
      unit: "ms",
      bar: atMost(5),
    },
    {
      // Not the difference of the two p99: a slow moment of the baseline would hide one of ours.
      figure: `${name}: a turn, p99, beside fetch's p50`,
      measured: asked.p99 - fetched.p50,
      unit: "ms",
      bar: atMost(15),
    },
    { figure: `${name}: the same request by fetch, p50`, measured: fetched.p50, unit: "ms", bar: null },
    { figure: `${name}: the same request by fetch, p99`, measured: fetched.p99, unit: "ms", bar: null },
  ];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** A conversation of this many bytes, in turns as a session would have them. */
function conversation(bytes: number): ModelMessage[] {
  const messages: ModelMessage[] = [];
  const text = "We spoke about the notes, and what is in them. ".repeat(20);
  for (let size = 0; size < bytes; size += text.length)
    messages.push(messages.length % 2 === 0 ? { role: "user", text } : { role: "assistant", text, tool_calls: [] });
  return messages.at(-1)?.role === "user" ? messages : [...messages, { role: "user", text: "Well?" }];
}

const headersOf = (format: WireFormatName): Record<string, string> => ({
  "content-type": "application/json",
  ...(format === "anthropic" ? { "x-api-key": KEY } : { authorization: `Bearer ${KEY}` }),
});

const urlOf = (url: string, format: WireFormatName): string =>
  `${url}${format === "google" ? "/models/test" : ""}${WIRE_FORMATS[format].path}`;
