import { z } from "zod";
import { isObject, type JsonObject } from "../../domain/json.ts";
import { type FrameIn, type FrameOut, frameOutSchema } from "../../domain/step-frame.ts";
import { type StepContext, StepError } from "../moniker.ts";
import { GrowingFields } from "./growing-text.ts";
import { objectIn, withoutThoughts } from "./json-reply.ts";
import type { ModelCalls } from "./model-calls.ts";
import { badOutput } from "./model-errors.ts";
import type { ModelMessage, ModelReply, ModelRequest } from "./model-turn.ts";

/** A call's signal, and where its text and usage are reported. */
type Call = Pick<StepContext, "signal" | "emit">;

/** A value the model should produce: the instructions and its schema. */
export type ObjectRequest<Value> = {
  instructions: string;
  schema: z.ZodType<Value>;
} & ({ prompt: string } | { messages: readonly ModelMessage[] });

/**
 * The language model as monikers use it: the session's model and its fallbacks.
 *
 * - Every call reports its usage (`usage`), even if it fails, and leaves a record in the step's row (`call`).
 * - Only an unusable reply is retried here, once. Errors are `StepError`s: `provider_down` and `rate_limited` are outages,
 *   which the runner waits out; `bad_output` may succeed next time; `reply_too_long`, `model_refused`, `model_rejected`,
 *   `model_auth` and `context_too_large` will not.
 */
export class Llm {
  /** `provider/model` of the session. */
  readonly model: string;
  /** The model's context window in tokens. */
  readonly context_window: number;
  readonly #calls: ModelCalls;

  constructor(calls: ModelCalls) {
    this.#calls = calls;
    this.model = calls.model.name;
    this.context_window = calls.context_window;
  }

  /** One turn: text, which streams, and the tool calls the model requests. It does not run the tools. */
  generate(request: ModelRequest, call: Call): Promise<ModelReply> {
    return this.#calls.generate(request, { ...call, onText: (text) => call.emit({ kind: "delta", text }) });
  }

  /** A value that matches the schema. Does not stream. */
  async object<Value>(request: ObjectRequest<Value>, call: Call): Promise<Value> {
    const { schema, instructions } = request;
    const shape = z.toJSONSchema(schema, { unrepresentable: "any", io: "input" }) as JsonObject;
    // A reply is always an object; any other value is wrapped in one.
    const isWrapped = shape["type"] !== "object";
    const expected = isWrapped ? { type: "object", properties: { value: shape }, required: ["value"] } : shape;
    const messages: ModelMessage[] =
      "messages" in request ? [...request.messages] : [{ role: "user", text: request.prompt }];
    const prompt = `${instructions}\n\nReply with one JSON object and nothing else. It fits this JSON Schema:\n${JSON.stringify(expected)}`;
    const read = (object: JsonObject): { value: Value } | string => {
      const parsed = schema.safeParse(isWrapped ? object["value"] : object);
      if (parsed.success) return { value: parsed.data };
      const [issue] = parsed.error.issues;
      return `${issue?.path.join(".")}: ${issue?.message}`;
    };
    const ask = async (more: readonly ModelMessage[]): Promise<ModelReply["message"]> => {
      const turn = { instructions: prompt, messages: [...messages, ...more] };
      return (await this.#calls.generate(turn, { ...call, onText() {} })).message;
    };
    const first = await ask([]);
    const outcome = readObject(first.text, read);
    if ("result" in outcome) return outcome.result.value;
    const problem = `That cannot be used: ${outcome.problem}. Reply with the corrected JSON object and nothing else.`;
    const repaired = readObject((await ask([first, { role: "user", text: problem }])).text, read);
    if ("result" in repaired) return repaired.result.value;
    throw badOutput(`the model's reply cannot be used: ${repaired.problem}`);
  }

  /** One step of a task by the model alone: a frame in, a frame out. Its text streams. */
  async runStep(frame: FrameIn, task: string, call: Call): Promise<FrameOut> {
    const fields = new GrowingFields((key, text) => {
      if (key === "text") call.emit({ kind: "delta", text });
    });
    const reply = await this.#ask("RunMonikerStep", { frame: JSON.stringify(frame), task }, call, (partial) =>
      fields.update(partial),
    );
    return this.#read(reply, call, STEP_SHAPE, (object) => toFrame(object, frame));
  }

  /** A summary of a text. Does not stream. */
  async summarize(text: string, purpose: string, call: Call): Promise<string> {
    const instructions = `Summarise the text below ${purpose}. Lines of JSON are turns of a conversation: "from" says who spoke. Keep names, decisions, open questions and figures. Reply with the summary only, in Markdown, in the language of the text.`;
    const request: ModelRequest = { instructions, messages: [{ role: "user", text }] };
    const { message } = await this.#calls.generate(request, { ...call, onText() {} });
    return message.text.trim();
  }

  async #ask(
    name: string,
    args: Record<string, string>,
    call: Call,
    onPartial?: (reply: string) => void,
  ): Promise<string> {
    const reply = withoutThoughts(await this.#calls.complete(name, args, { ...call, onPartial }));
    // There is nothing to repair; asking again works better.
    if (reply.trim() === "") throw badOutput("the model's reply is empty");
    return reply;
  }

  /** Parses a reply. An unusable one gets one repair attempt. */
  async #read<Result>(
    reply: string,
    call: Call,
    shape: string,
    read: (object: JsonObject) => Result | string,
  ): Promise<Result> {
    const first = readObject(reply, read);
    if (!("problem" in first)) return first.result;
    const repaired = readObject(await this.#ask("RepairReply", { reply, problem: first.problem, shape }, call), read);
    if (!("problem" in repaired)) return repaired.result;
    throw new StepError("bad_output", `the model's reply cannot be used: ${repaired.problem}`, { retryable: false });
  }
}
const STEP_SHAPE =
  'an object with "text" (string) and, where they are known, "next_step" (string), "state" (object), "done" (boolean), "data", "notes" (string)';
function readObject<Result>(
  reply: string,
  read: (object: JsonObject) => Result | string,
): { result: Result } | { problem: string } {
  const object = objectIn(reply);
  const result = object ? read(object) : "it is not a JSON object";
  return typeof result === "string" ? { problem: result } : { result };
}

/** An absent state keeps the old one; a wrong one makes the reply unusable. */
function toFrame(object: JsonObject, { step, state }: FrameIn): FrameOut | string {
  const parsed = frameOutSchema.safeParse({ done: false, next_step: step, state, ...withoutNulls(object), step });
  if (parsed.success) return { ...parsed.data, ...asWritten(object) };
  const [issue] = parsed.error.issues;
  return `${issue?.path.join(".")}: ${issue?.message}`;
}

/** The schema's copy drops a key named "__proto__". */
function asWritten({ state, data }: JsonObject): Partial<FrameOut> {
  return { ...(isObject(state) ? { state } : {}), ...(data === undefined || data === null ? {} : { data }) };
}

/** Models write null for what they leave out; only for `state` does null not mean absent. */
const withoutNulls = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([key, value]) => value !== null || key === "state"));
