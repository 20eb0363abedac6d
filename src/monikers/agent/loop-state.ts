import { z } from "zod";
import { type JsonObject, jsonObjectSchema, jsonSchema } from "../../domain/json.ts";
import { askSchema } from "../../domain/question.ts";
import { modelMessageSchema } from "../llm/model-turn.ts";

/** What the call that comes next waits for, or just was told. */
const awaitedSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("approval") }),
  z.object({ kind: z.literal("in_doubt") }),
  /** The tool asked a person; `resume` goes back to it with the answer, null where the answer is the result. */
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
 * All that an agent knows. It is kept as the session's state, so every field is JSON and may be missing or edited by a person.
 *
 * LOOP-1  Every call of an assistant's message has its result behind that message before the next model call, whatever
 *         happened to the call: providers refuse anything else, and the session would be stuck.
 */
const loopStateSchema = z.object({
  /** The N of `think/N` that comes next, or whose calls are under way. */
  turn: z.int().min(1).catch(1).default(1),
  messages: z.array(modelMessageSchema).catch([]).default([]),
  /** Of what was said before `messages`. */
  summary: z.string().catch("").default(""),
  /** Loaded contexts. */
  background: z
    .array(z.object({ path: z.string(), text: z.string() }))
    .catch([])
    .default([]),
  /** Calls that the model's last turn asks for and that have no result yet. The first is next. */
  calls: z
    .array(z.object({ call_id: z.string(), name: z.string(), args: jsonObjectSchema }))
    .catch([])
    .default([]),
  /** Calls of that turn that have one. */
  finished: z.int().min(0).catch(0).default(0),
  awaited: awaitedSchema.nullable().catch(null).default(null),
  /** The first of `calls` must not be made twice unasked. */
  is_once: z.boolean().catch(false).default(false),
  /** The first of `calls` was approved. */
  is_approved: z.boolean().catch(false).default(false),
  /** Tools that a person approved for the rest of the session. */
  always: z.array(z.string()).catch([]).default([]),
  /** What was said while calls were under way: it follows their results. */
  heard: z.array(modelMessageSchema).catch([]).default([]),
  reports: z.array(reportSchema).catch([]).default([]),
  /** Where in `messages` the exchange that is under way began. */
  exchange_at: z.int().min(0).catch(0).default(0),
  /** Set where the provider found a request too large that was thought to fit: the share of the window that is used. */
  window_share: z.number().positive().max(1).catch(1).default(1),
  /** What a chat without a model waits to be told. */
  question: z
    .object({ text: z.string(), tool: z.string(), args: jsonObjectSchema })
    .nullable()
    .catch(null)
    .default(null),
});
export type LoopState = z.infer<typeof loopStateSchema>;
export type Question = NonNullable<LoopState["question"]>;

export const recall = (state: JsonObject): LoopState => loopStateSchema.parse(state);

/** What is as it is in a new session is not kept. */
export const toState = (state: LoopState): JsonObject =>
  Object.fromEntries(Object.entries(state).filter(([key, value]) => !isFresh(key, value)));

const FRESH: Record<string, unknown> = loopStateSchema.parse({});
const isFresh = (key: string, value: unknown): boolean =>
  Array.isArray(value) ? value.length === 0 : value === FRESH[key];
