import { type JsonValue } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { StepCall } from "../domain/step.ts";

/** What attempts at a step used: tokens, money, and calls to models and tools. */
export type Spending = { tokens: number; cost_usd: number; calls: StepCall[] };

/** The most that is kept of a call's input and of its output, in bytes of JSON. */
const LARGEST_PART = 64 * 1024;
/** The most that is kept of all calls of one step: after many retries they would make its row large. */
const LARGEST_ROW = 512 * 1024;
/** The most calls kept per step; of more, the first and the latest. */
const MOST_CALLS = 200;
const LONGEST_ERROR = 2000;

export const noSpending = (): Spending => ({ tokens: 0, cost_usd: 0, calls: [] });

export const addSpending = (one: Spending, other: Spending): Spending => ({
  tokens: one.tokens + other.tokens,
  cost_usd: addCost(one.cost_usd, other.cost_usd),
  calls: rowCalls([...one.calls, ...other.calls]),
});

/** Rounded to a billionth of a dollar, so that sums of many small amounts stay readable. */
export const addCost = (one: number, other: number): number => Math.round((one + other) * 1e9) / 1e9;

/** The session with the spending added. */
export const charged = (session: Session, { tokens, cost_usd }: Omit<Spending, "calls">): Session => ({
  ...session,
  tokens_used: session.tokens_used + tokens,
  cost_usd: addCost(session.cost_usd, cost_usd),
});

/** Monikers may be plain JavaScript: a value that is not a count must not spoil the sum. */
export const tokenCount = (tokens: number): number => (Number.isFinite(tokens) && tokens > 0 ? Math.round(tokens) : 0);
export const costOf = (cost_usd: number | null | undefined): number =>
  typeof cost_usd === "number" && Number.isFinite(cost_usd) && cost_usd > 0 ? cost_usd : 0;

/** A call as it is stored: contents only if wanted, and truncated to fit a row. */
export function storedCall(call: StepCall, keeps_content: boolean): StepCall {
  const { tokens, input_tokens, output_tokens, cached_tokens, cost_usd, latency_ms } = call;
  const counts = Object.entries({ tokens, input_tokens, output_tokens, cached_tokens });
  return {
    kind: call.kind === "tool" ? "tool" : "model",
    name: call.name,
    input: keeps_content ? cut(call.input) : null,
    output: keeps_content ? cut(call.output) : null,
    ...Object.fromEntries(counts.flatMap(([name, count]) => (count === undefined ? [] : [[name, tokenCount(count)]]))),
    ...(call.estimated ? { estimated: true } : {}),
    ...(cost_usd === undefined ? {} : { cost_usd: costOf(cost_usd) }),
    latency_ms: Math.max(0, Math.round(latency_ms * 1000) / 1000) || 0,
    ...(call.error === undefined ? {} : { error: call.error.slice(0, LONGEST_ERROR) }),
  };
}

/** Adds a call and drops calls that no row would keep. */
export function addCall({ calls }: Spending, call: StepCall): void {
  calls.push(call);
  if (calls.length > 2 * MOST_CALLS) calls.splice(1, MOST_CALLS);
}

/** The calls for a row. If they are too large, only the latest ones keep their contents. */
export function rowCalls(calls: readonly StepCall[]): StepCall[] {
  if (calls.length === 0) return [];
  const selected = calls.length <= MOST_CALLS ? calls : [...calls.slice(0, 1), ...calls.slice(1 - MOST_CALLS)];
  let room = LARGEST_ROW;
  return selected
    .toReversed()
    .map((call) => {
      room -= sizeOf(call.input) + sizeOf(call.output);
      return room >= 0 ? call : { ...call, input: OMITTED, output: OMITTED };
    })
    .toReversed();
}

const OMITTED = "… (omitted: this step's calls are too large to keep in full)";

function cut(value: JsonValue | undefined): JsonValue {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return null;
  // A copy: the moniker may still change its own.
  if (Buffer.byteLength(text) <= LARGEST_PART) return JSON.parse(text) as JsonValue;
  const whole = typeof value === "string" ? value : text;
  const bytes = Buffer.byteLength(whole);
  const start = Buffer.from(whole)
    .subarray(0, LARGEST_PART)
    .toString("utf8")
    .replace(/\uFFFD+$/, "");
  return `${start}… (truncated: ${LARGEST_PART} of ${bytes} bytes)`;
}

const sizeOf = (value: JsonValue): number => (value === null ? 0 : JSON.stringify(value).length);
