import assert from "node:assert/strict";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { SessionOptions } from "../../src/domain/session.ts";
import type { StepProgress } from "../../src/monikers/moniker.ts";
import type { SessionTools, ToolOutcome, ToolStep } from "../../src/tools/tool.ts";
import type { ToolRegistry } from "../../src/tools/tool-registry.ts";

export type CallOptions = {
  options?: SessionOptions;
  signal?: AbortSignal;
  is_rerun?: true;
  ids?: Partial<ToolStep["ids"]>;
  news?: StepProgress[];
};

/** The tools of a step, without a runner. */
export function toolsOf(
  registry: ToolRegistry,
  { options = {}, signal, is_rerun, ids, news }: CallOptions = {},
): SessionTools {
  return registry.forStep({
    options,
    signal: signal ?? new AbortController().signal,
    ids: { agent_id: "agent", session_id: "session", conversation_id: null, iteration: 4, ...ids },
    emit: (item) => news?.push(item),
    ...(is_rerun && { is_rerun }),
  });
}

type Result = Extract<ToolOutcome, { kind: "result" }>;

export function resultOf(outcome: ToolOutcome): Result {
  assert.ok(outcome.kind === "result", JSON.stringify(outcome));
  return outcome;
}

/** The text of a call that must succeed. */
export async function textOf(tools: SessionTools, name: string, args: JsonObject = {}): Promise<string> {
  const { text, is_error } = resultOf(await tools.call(name, args));
  assert.equal(is_error, false, text);
  return text;
}

/** The text of a call that must fail. */
export async function errorOf(tools: SessionTools, name: string, args: JsonObject = {}): Promise<string> {
  const { text, is_error } = resultOf(await tools.call(name, args));
  assert.equal(is_error, true, text);
  return text;
}

export const asJson = (value: unknown): JsonValue => JSON.parse(JSON.stringify(value)) as JsonValue;
