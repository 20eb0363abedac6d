import { isObject, type JsonObject } from "../../domain/json.ts";
import { type FrameIn, type FrameOut, frameOutSchema } from "../../domain/step-frame.ts";
import { type StepContext, StepError } from "../moniker.ts";
import type { BamlEngine } from "./baml-engine.ts";
import { GrowingFields } from "./growing-text.ts";
import { objectIn, withoutThoughts } from "./json-reply.ts";

/** How a step talks to the model: under its signal, telling what it says and spends. */
type Call = Pick<StepContext, "signal" | "emit">;

/** The language model as monikers use it. */
export class Llm {
  readonly #engine: BamlEngine;

  constructor(engine: BamlEngine) {
    this.#engine = engine;
  }

  /** One step of a task by the model alone: a frame in, a frame out. Its text streams as it grows. */
  async runStep(frame: FrameIn, task: string, call: Call): Promise<FrameOut> {
    const fields = new GrowingFields((key, text) => {
      if (key === "text") call.emit({ kind: "delta", text });
    });
    const reply = await this.#ask("RunMonikerStep", { frame: JSON.stringify(frame), task }, call, (partial) =>
      fields.update(partial),
    );
    return this.#read(reply, call, STEP_SHAPE, (object) => toFrame(object, frame));
  }

  /** The next move of a chat: an answer, which streams as it grows, or a tool. */
  async chatTurn(
    args: { instructions: string; background: string; conversation: string; work: string },
    call: Call,
  ): Promise<ChatMove> {
    let tool = "";
    const fields = new GrowingFields((key, text) => {
      if (key === "tool") tool += text;
      // What precedes a tool is not for people: text counts once the tool is known to be the answer.
      if (key === "text" && tool === "reply") call.emit({ kind: "delta", text });
    });
    const reply = await this.#ask("ChatTurn", args, call, (partial) => fields.update(partial));
    return this.#read(reply, call, MOVE_SHAPE, toMove);
  }

  async summarize(text: string, purpose: string, call: Call): Promise<string> {
    return (await this.#ask("SummarizeText", { text, purpose }, call)).trim();
  }

  async #ask(
    name: string,
    args: Record<string, string>,
    { signal, emit }: Call,
    onPartial?: (reply: string) => void,
  ): Promise<string> {
    const completed = await this.#engine.complete(name, args, {
      signal,
      ...(onPartial ? { onPartial } : {}),
      onWasted: ({ tokens, estimated }) => emit({ kind: "usage", tokens, estimated }),
    });
    const { tokens, estimated } = completed;
    const text = withoutThoughts(completed.text);
    emit({ kind: "usage", tokens, estimated });
    // There is nothing to correct in it: the same question again is the better one.
    if (text.trim() === "") throw new StepError("bad_output", "the model's reply is empty", { retryable: true });
    return text;
  }

  /** Reads a reply; one that cannot be used is sent back once to be corrected. */
  async #read<Result>(
    reply: string,
    call: Call,
    shape: string,
    read: (object: JsonObject) => Result | string,
  ): Promise<Result> {
    const first = readObject(reply, read);
    if (!("problem" in first)) return first.result;
    const mended = readObject(await this.#ask("RepairReply", { reply, problem: first.problem, shape }, call), read);
    if (!("problem" in mended)) return mended.result;
    throw new StepError("bad_output", `the model's reply cannot be used: ${mended.problem}`, { retryable: false });
  }
}

const STEP_SHAPE =
  'an object with "text" (string) and, where they are known, "next_step" (string), "state" (object), "done" (boolean), "data", "notes" (string)';
const MOVE_SHAPE =
  'either {"tool": "reply", "text": the whole answer as a string} or {"tool": its name, "args": an object}';

export type ChatMove = { tool: "reply"; text: string } | { tool: string; args: JsonObject };

function readObject<Result>(
  reply: string,
  read: (object: JsonObject) => Result | string,
): { result: Result } | { problem: string } {
  const object = objectIn(reply);
  const result = object ? read(object) : "it is not a JSON object";
  return typeof result === "string" ? { problem: result } : { result };
}

/** An absent state means that the old one stays; a wrong one is a bad reply. */
function toFrame(object: JsonObject, { step, state }: FrameIn): FrameOut | string {
  const parsed = frameOutSchema.safeParse({ done: false, next_step: step, state, ...withoutNulls(object), step });
  if (parsed.success) return { ...parsed.data, ...asWritten(object) };
  const [issue] = parsed.error.issues;
  return `${issue?.path.join(".")}: ${issue?.message}`;
}

/** The schema's copy leaves out a key named "__proto__". */
function asWritten({ state, data }: JsonObject): Partial<FrameOut> {
  return { ...(isObject(state) ? { state } : {}), ...(data === undefined || data === null ? {} : { data }) };
}

function toMove(object: JsonObject): ChatMove | string {
  const { tool, text, args } = object;
  if (tool === "reply" || (tool === undefined && typeof text === "string"))
    return typeof text === "string" ? { tool: "reply", text } : "text is missing";
  if (typeof tool !== "string") return "tool is missing";
  return { tool, args: isObject(args) ? args : {} };
}

/** Models write null for what they leave out; only `state` must not be taken for absent then. */
const withoutNulls = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([key, value]) => value !== null || key === "state"));
