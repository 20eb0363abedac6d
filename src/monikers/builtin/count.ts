import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { defineMoniker } from "../moniker.ts";

/** Counts 0, 1, … `to`. For demos, tests and benchmarks: it can be slow, large, or fail on purpose. */
export const count = defineMoniker({
  name: "count",
  kind: "finite",
  description: "Counts from 0 to a number, one step each.",
  params: z.object({
    to: z.int().min(0).describe("The last number."),
    delay_ms: z.int().min(0).max(3_600_000).optional().describe("How long each step takes, in milliseconds."),
    payload_bytes: z.int().min(0).max(8_388_608).optional().describe("Bytes of filler in each step's state."),
    fail_at: z.int().min(0).optional().describe("The number at which the step throws."),
    fail_times: z.int().min(1).optional().describe("How often it throws there; always by default."),
  }),
  async step({ step, state }, { params, signal, ids }) {
    if (params.delay_ms) await wait(params.delay_ms, undefined, { signal });
    const n = typeof state["n"] === "number" ? state["n"] + 1 : 0;
    if (n === params.fail_at && mustFail(`${ids.session_id} ${n}`, params.fail_times))
      throw new Error(`told to fail at ${n}`);
    const filler: JsonObject = params.payload_bytes ? { filler: "x".repeat(params.payload_bytes) } : {};
    return { step, next_step: String(n + 1), state: { n, ...filler }, text: String(n), done: n >= params.to };
  },
});

/** Failing a fixed number of times needs memory outside the frame; only a test double may have that. */
const failures = new Map<string, number>();

function mustFail(key: string, times: number | undefined): boolean {
  if (times === undefined) return true;
  const failed = failures.get(key) ?? 0;
  if (failed >= times) return false;
  failures.set(key, failed + 1);
  return true;
}
