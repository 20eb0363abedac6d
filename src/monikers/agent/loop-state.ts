import { z } from "zod";
import { type JsonObject, jsonObjectSchema, jsonSchema } from "../../domain/json.ts";
import { askSchema } from "../../domain/question.ts";
import { modelMessageSchema } from "../llm/model-turn.ts";

/** What the next call waits for, or has just received. */
const awaitedSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("approval") }),
  z.object({ kind: z.literal("in_doubt") }),
  /** The tool asked a person; `resume` is passed back to it with the answer, null if the answer is the result. */
  z.object({ kind: z.literal("person"), ask: askSchema, until: z.string().optional(), resume: jsonSchema }),
  z.object({
    kind: z.literal("time"),
    until: z.string().optional(),
    session_ids: z.array(z.string()).optional(),
  }),
]);

/** How a session that this one started ended. */
const reportSchema = z.object({ session_id: z.string(), text: z.string(), is_told: z.boolean() });

/**
 * Everything an agent knows. It is the session's state, so every field is JSON and may be missing or edited by a person.
 *
 * LOOP-1  Every tool call of an assistant message is followed by its result before the next model call, whatever happened to
 *         the call: providers refuse anything else, and the session would be stuck.
 */
const loopStateSchema = z.object({
  /** The N of the next `think/N`, or of the one whose calls are in progress. */
  turn: z.int().min(1).catch(1).default(1),
  messages: z.array(modelMessageSchema).catch([]).default([]),
  /** Of the messages before `messages`. */
  summary: z.string().catch("").default(""),
  /** Loaded contexts. */
  background: z
    .array(z.object({ path: z.string(), text: z.string() }))
    .catch([])
    .default([]),
  /** Calls of the model's last turn without a result yet. The first is next. */
  calls: z
    .array(z.object({ call_id: z.string(), name: z.string(), args: jsonObjectSchema }))
    .catch([])
    .default([]),
  /** How many calls of that turn have a result. */
  finished: z.int().min(0).catch(0).default(0),
  awaited: awaitedSchema.nullable().catch(null).default(null),
  /** The first of `calls` must not be repeated without a person's consent. */
  is_once: z.boolean().catch(false).default(false),
  /** The first of `calls` was approved. */
  is_approved: z.boolean().catch(false).default(false),
  /** Tools that a person approved for the rest of the session. */
  always: z.array(z.string()).catch([]).default([]),
  /** Messages that arrived while calls were in progress; they follow the results. */
  heard: z.array(modelMessageSchema).catch([]).default([]),
  reports: z.array(reportSchema).catch([]).default([]),
  /** Where the current exchange begins in `messages`. */
  exchange_at: z.int().min(0).catch(0).default(0),
  /** The share of the window to use; lowered if the provider finds a request too large that seemed to fit. */
  window_share: z.number().positive().max(1).catch(1).default(1),
  /** What a chat without a model is asking. */
  question: z
    .object({ text: z.string(), tool: z.string(), args: jsonObjectSchema })
    .nullable()
    .catch(null)
    .default(null),
});
export type LoopState = z.infer<typeof loopStateSchema>;
export type Question = NonNullable<LoopState["question"]>;

export const recall = (state: JsonObject): LoopState => loopStateSchema.parse(state);

/** Omits fields that have their initial value. */
export const toState = (state: LoopState): JsonObject =>
  Object.fromEntries(Object.entries(state).filter(([key, value]) => !isFresh(key, value)));

const FRESH: Record<string, unknown> = loopStateSchema.parse({});
const isFresh = (key: string, value: unknown): boolean =>
  Array.isArray(value) ? value.length === 0 : value === FRESH[key];
