import type { z } from "zod";
import { answerFormSchema } from "../domain/answer.ts";
import { isObject, type JsonValue } from "../domain/json.ts";
import type { Ask } from "../domain/question.ts";
import { type FrameAction, type FrameOut, frameOutSchema, plainFrameSchema } from "../domain/step-frame.ts";
import { StepError } from "../monikers/moniker.ts";

const DEEPEST = 500;
const LARGEST_BYTES = 32 * 1024 * 1024;

/** What a moniker returned, checked: a frame of JSON values. Fields that are undefined count as absent. */
export function checkFrame(returned: unknown): FrameOut {
  const schema: z.ZodType<FrameOut> = isPlain(returned) ? plainFrameSchema : frameOutSchema;
  const parsed = schema.safeParse(returned);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw badFrame(`${issue?.path.join(".") || "it"}: ${issue?.message}`);
  }
  const { state: _, data: __, ask: ___, actions: ____, ...rest } = parsed.data;
  const { state, data, ask, actions } = returned as FrameOut; // as returned: the schema's copy leaves out a key named "__proto__"
  const { step, next_step, text = "", notes = "" } = rest;
  const budget = { left: LARGEST_BYTES - step.length - next_step.length - text.length - notes.length };
  const frame: FrameOut = { ...rest, state: toJson(state, "state", 0, budget) as FrameOut["state"] };
  if (data !== undefined) frame.data = toJson(data, "data", 0, budget);
  if (actions !== undefined) frame.actions = toJson(actions, "actions", 0, budget) as FrameAction[];
  if (ask !== undefined) frame.ask = checkAsk(toJson(ask, "ask", 0, budget) as Ask);
  return frame;
}

const OTHER_FIELDS = Object.keys(frameOutSchema.shape).filter((name) => !(name in plainFrameSchema.shape));

const isPlain = (returned: unknown): boolean =>
  isObject(returned) && OTHER_FIELDS.every((name) => returned[name] === undefined);

function checkAsk(ask: Ask): Ask {
  const form = ask.schema === undefined ? null : answerFormSchema.safeParse(ask.schema);
  const [issue] = form?.error?.issues ?? [];
  if (issue) throw badFrame(`ask.${["schema", ...issue.path].join(".")}: ${issue.message}`);
  return ask;
}

/** The value itself where it is JSON already; a copy without undefined fields where only those stand in the way. */
function toJson(value: unknown, path: string, depth: number, budget: { left: number }): JsonValue {
  if (depth > DEEPEST) throw badFrame(`${path.slice(0, 100)}…: nested more than ${DEEPEST} deep`);
  budget.left -= typeof value === "string" ? value.length + 2 : 4;
  if (budget.left < 0) throw badFrame(`it is larger than ${LARGEST_BYTES} bytes`);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "number") throw badFrame(`${path}: ${value} is not JSON`);
  if (typeof value !== "object") throw badFrame(`${path}: a ${typeof value} is not JSON`);
  if (Array.isArray(value)) return value.map((item, index) => toJson(item, `${path}[${index}]`, depth + 1, budget));
  return objectToJson(value, path, depth, budget);
}

function objectToJson(value: object, path: string, depth: number, budget: { left: number }): JsonValue {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw badFrame(`${path}: only plain objects are JSON`);
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    entries.map(([key, item]) => {
      budget.left -= key.length;
      return [key, toJson(item, `${path}.${key}`, depth + 1, budget)];
    }),
  );
}

const badFrame = (why: string): StepError =>
  new StepError("bad_frame", `the moniker returned a bad frame: ${why}`, { retryable: false });
