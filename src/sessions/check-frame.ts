import type { z } from "zod";
import { answerFormSchema } from "../domain/answer.ts";
import { isObject, type JsonObject, type JsonValue, setOwn } from "../domain/json.ts";
import type { Ask } from "../domain/question.ts";
import { type FrameAction, type FrameOut, frameOutSchema, plainFrameSchema } from "../domain/step-frame.ts";
import { StepError } from "../monikers/moniker.ts";

const DEEPEST = 500;
const LARGEST_BYTES = 32 * 1024 * 1024;

/**
 * Checks what a moniker returned and copies it, so that the moniker cannot change it later. Undefined fields count as absent.
 * Parts equal to `before` are shared with it, so that comparing two states costs only what changed.
 */
export function checkFrame(returned: unknown, before: JsonObject = {}): FrameOut {
  const schema: z.ZodType<FrameOut> = isPlain(returned) ? plainFrameSchema : frameOutSchema;
  const parsed = schema.safeParse(returned);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw badFrame(`${issue?.path.join(".") || "it"}: ${issue?.message}`);
  }
  const { state: _, data: __, ask: ___, actions: ____, ...rest } = parsed.data;
  const { state, data, ask, actions } = returned as FrameOut; // as returned: the schema's copy leaves out a key named "__proto__"
  const { step, next_step, text = "", notes = "" } = rest;
  const left = LARGEST_BYTES - step.length - next_step.length - text.length - notes.length;
  const walk: Walk = { left, path: [] };
  const frame: FrameOut = { ...rest, state: fieldToJson("state", state, before, walk) as FrameOut["state"] };
  if (data !== undefined) frame.data = fieldToJson("data", data, null, walk);
  if (actions !== undefined) frame.actions = fieldToJson("actions", actions, null, walk) as FrameAction[];
  if (ask !== undefined) frame.ask = checkAsk(fieldToJson("ask", ask, null, walk) as Ask);
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

/** The bytes left, and the current path in the frame. */
type Walk = { left: number; path: (string | number)[] };

function fieldToJson(name: string | number, value: unknown, before: JsonValue | undefined, walk: Walk): JsonValue {
  walk.path.push(name);
  const json = toJson(value, before, walk);
  walk.path.pop();
  return json;
}

/** A copy without undefined fields, or `before` itself if they are identical. */
function toJson(value: unknown, before: JsonValue | undefined, walk: Walk): JsonValue {
  if (walk.path.length > DEEPEST + 1)
    throw badFrame(`${pathText(walk).slice(0, 100)}…: nested more than ${DEEPEST} deep`);
  spend(walk, typeof value === "string" ? value.length + 2 : 4);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "number") throw badFrame(`${pathText(walk)}: ${value} is not JSON`);
  if (typeof value !== "object") throw badFrame(`${pathText(walk)}: a ${typeof value} is not JSON`);
  if (Array.isArray(value)) return listToJson(value, Array.isArray(before) ? before : [], walk);
  return objectToJson(value, isObject(before) ? before : {}, walk);
}

function listToJson(value: unknown[], before: JsonValue[], walk: Walk): JsonValue[] {
  const copy = value.map((item, index) => fieldToJson(index, item, before[index], walk));
  return copy.length === before.length && copy.every((item, index) => item === before[index]) ? before : copy;
}

function objectToJson(value: object, before: JsonObject, walk: Walk): JsonObject {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    throw badFrame(`${pathText(walk)}: only plain objects are JSON`);
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (item === undefined) continue;
    spend(walk, key.length);
    setOwn(copy, key, fieldToJson(key, item, Object.hasOwn(before, key) ? before[key] : undefined, walk));
  }
  const names = Object.keys(copy);
  const names_before = Object.keys(before);
  const isSame =
    names.length === names_before.length &&
    names.every((name, index) => name === names_before[index] && copy[name] === before[name]);
  return isSame ? before : copy;
}

function spend(walk: Walk, bytes: number): void {
  walk.left -= bytes;
  if (walk.left < 0) throw badFrame(`it is larger than ${LARGEST_BYTES} bytes`);
}

const pathText = ({ path: [first, ...rest] }: Walk): string =>
  `${first}${rest.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("")}`;

const badFrame = (why: string): StepError =>
  new StepError("bad_frame", `the moniker returned a bad frame: ${why}`, { retryable: false });
