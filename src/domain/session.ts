import { z } from "zod";
import { idSchema, now, timeSchema } from "./ids.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { unknownWords } from "./nearest-word.ts";
import { questionSchema } from "./question.ts";

export const SESSION_STATUSES = ["running", "waiting", "paused", "stopping", "stopped", "done", "error"] as const;
export const sessionStatusSchema = z.enum(SESSION_STATUSES);
export type SessionStatus = z.infer<typeof sessionStatusSchema>;

/**
 * The status machine: every change there is, and no other is made (`changeStatus`). A status may always stay as it is.
 *
 * - `running` rests as `waiting` when a reactive moniker has nothing to do, ends as `done` by itself, as `stopped` by a limit,
 *   as `error` by a step that failed for good.
 * - `paused` keeps the step that was running: when that ends, the session may end with it.
 * - `stopping` is a destroyed session whose step may finish.
 * - `error`, and `stopped` where a limit did it, go on after a resume.
 */
export const STATUS_CHANGES: Readonly<Record<SessionStatus, readonly SessionStatus[]>> = {
  running: ["waiting", "paused", "stopping", "stopped", "done", "error"],
  waiting: ["running", "paused", "stopping"],
  paused: ["running", "waiting", "stopping", "stopped", "done", "error"],
  stopping: ["stopped"],
  error: ["running", "waiting", "stopping"],
  stopped: ["running", "waiting"],
  done: [],
};

export const mayChange = (from: SessionStatus, to: SessionStatus): boolean =>
  from === to || STATUS_CHANGES[from].includes(to);

/** A live session has a runner or will get one after a restart; the others rest until a person resumes them, or for good. */
export const LIVE_STATUSES = ["running", "waiting", "paused", "stopping"] as const satisfies SessionStatus[];
const live: ReadonlySet<SessionStatus> = new Set(LIVE_STATUSES);
export const isLive = (status: SessionStatus): boolean => live.has(status);

const stopReasonSchema = z.enum(["max_steps", "max_runtime_s", "max_tokens", "max_cost_usd", "destroyed"]);
export type StopReason = z.infer<typeof stopReasonSchema>;

/** A limit's word is not the last: `resume` with a higher one lets the session go on. */
export const isStoppedByLimit = ({ status, stop_reason }: { status: SessionStatus; stop_reason: StopReason | null }) =>
  status === "stopped" && stop_reason !== null && stop_reason !== "destroyed";

export const retrySchema = z.object({
  /** Attempts at one step, the first included. 3 by default; 1 means no retry. */
  max_attempts: z.int().min(1).max(100).default(3),
  /** Wait before the second attempt in milliseconds, doubled for each further one. 500 by default. */
  backoff_ms: z.int().min(0).max(3_600_000).default(500),
  /** Seconds for which a step is tried again while its model cannot be reached, which uses up no attempt. 900 by default; 0: it counts like any error. */
  outage_s: z.number().min(0).max(2_592_000).optional(),
});

const toolGlobsSchema = z.array(z.string().min(1).max(200)).max(200);
/** What happens when a session's moniker asks for a tool, by globs over names (`<server>/<tool>`): the first list that fits decides. */
const toolPolicySchema = z.strictObject({
  deny: toolGlobsSchema.optional(),
  ask: toolGlobsSchema.optional(),
  run: toolGlobsSchema.optional(),
});
export type ToolGlobs = z.infer<typeof toolPolicySchema>;

/** How a session's model is to answer. What is absent is the provider's default. */
const modelSettingsSchema = z.object({
  temperature: z.number().min(0).max(2).optional(),
  max_output_tokens: z.int().min(1).optional(),
  /** How much the model thinks before it answers, where it can. */
  reasoning: z.enum(["none", "minimal", "low", "medium", "high"]).optional(),
});
export type ModelSettings = z.infer<typeof modelSettingsSchema>;

const modelNameSchema = z
  .string()
  .max(200)
  .regex(/^[^/\s]+\/\S+$/, "provider/model is expected");

/** Seconds that a step may take where its session says nothing else. */
export const DEFAULT_STEP_TIMEOUT_S = 600;

type Nested = <Schema extends z.ZodObject>(schema: Schema, kind: string) => Schema;

/** Their fields; `nested` makes the objects within them as strict as whoever reads them wants. */
const optionFields = (nested: Nested) => ({
  stop_on_done: z.boolean().optional(),
  max_steps: z.int().min(1).optional(),
  max_runtime_s: z.number().positive().optional(),
  max_tokens: z.int().min(1).optional(),
  max_cost_usd: z.number().positive().optional(),
  step_interval_ms: z.int().min(0).optional(),
  step_timeout_s: z
    .number()
    .positive()
    .optional()
    .describe(`Seconds that one attempt at a step may take; ${DEFAULT_STEP_TIMEOUT_S} where it is absent.`),
  retry: nested(retrySchema, "a field of retry").optional(),
  /** A session that a step started goes on when the one that started it is destroyed. */
  outlives_parent: z.boolean().optional(),
  /** Globs over step tokens: before such a step the session is held until a person resumes it. */
  hold_before: z.array(z.string().min(1).max(500)).max(100).optional(),
  tools: nested(toolPolicySchema, "a list of tools")
    .optional()
    .describe("Globs over tools' names; the first list that fits, in the order deny, ask, run, decides."),
  model: modelNameSchema.optional().describe("provider/model; EVERSTEP_MODEL where it is absent."),
  model_settings: nested(modelSettingsSchema, "a setting of the model")
    .optional()
    .describe("How the model is to answer; the provider's defaults where absent."),
  fallback_models: z
    .array(modelNameSchema)
    .max(5)
    .optional()
    .describe("Asked in turn where the model cannot be reached or does not take the request."),
});

/** A session's options as they are stored: what another version knew and this one does not is no reason not to read them. */
export const sessionOptionsSchema = z.object(optionFields((schema) => schema));

/** Refuses words that the schema does not know, and says which is meant. */
const onlyKnown: Nested = (schema, kind) =>
  z.strictObject(schema.shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys" ? unknownWords(issue.keys, kind, Object.keys(schema.shape)) : undefined,
  }) as unknown as typeof schema;

/** Options as somebody asks for them. A word that is none of them is refused: a limit with a typing error would limit nothing. */
export const requestedOptionsSchema = onlyKnown(z.object(optionFields(onlyKnown)), "an option");
export type SessionOptions = z.infer<typeof sessionOptionsSchema>;

/** Why a session is paused: a person asked for it, it came to a breakpoint, or its process crashed at one step too often. */
const pauseReasonSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("person"), user_id: z.string().optional(), reason: z.string().optional() }),
  z.object({ kind: z.literal("breakpoint"), step_token: z.string() }),
  z.object({ kind: z.literal("crashes"), step_token: z.string(), attempts: z.int().min(1) }),
]);

/** How an attempt at a step ended without a commit, as far as that was written. */
const attemptEndSchema = z.enum(["error", "interrupt", "timeout"]);

const startedAttemptSchema = z.object({
  /** Of the step that it is about: it says nothing of any other. */
  iteration: z.int().min(0),
  /** Crashes in a row while the step was under way. */
  attempts: z.int().min(0),
  /** The step must not run twice unasked: each of its attempts is written here before it begins. */
  once: z.boolean().optional(),
  /** How many attempts were begun, as far as is known; exact for a step marked `once`. */
  begun: z.int().min(0).optional(),
  /** How the last of them ended; absent where nobody was left to tell. */
  ended: attemptEndSchema.optional(),
  /** Since when what the step needs is out of reach, in one attempt after the other. */
  outage_since: timeSchema.optional(),
  /** A person let it pass a breakpoint. */
  is_released: z.literal(true).optional(),
  /** The session is to run, though nothing was said: the time came until which it waited, or its last step said so. */
  is_due: z.literal(true).optional(),
});
export type StartedAttempt = z.infer<typeof startedAttemptSchema>;

/** A row of the table `agent_state`: where a session stands. */
export const sessionSchema = z.object({
  agent_id: idSchema,
  session_id: idSchema,
  conversation_id: idSchema.nullable(),
  moniker: z.string(),
  params: jsonObjectSchema,
  options: sessionOptionsSchema,
  status: sessionStatusSchema,
  stop_reason: stopReasonSchema.nullable(),
  /** Of the last committed step; -1 before the first. */
  iteration: z.int().min(-1),
  step_token: z.string().nullable(),
  next_step_token: z.string(),
  result: jsonSchema,
  /** The moniker's state: that of the last committed step. */
  context: jsonObjectSchema,
  pending_guidance: z.array(jsonSchema),
  /** The actions that brought `pending_guidance`, in the same order. */
  pending_action_ids: z.array(idSchema),
  last_error: z.string().nullable(),
  tokens_used: z.int().min(0),
  /** The action that made the session, so that a repeated request is answered as the first one was. */
  created_action_id: idSchema,
  parent_session_id: idSchema.nullable(),
  /** The last iteration that a fork shares with its parent. */
  parent_iteration: z.int().min(0).nullable(),
  created_at: timeSchema,
  updated_at: timeSchema,
  ended_at: timeSchema.nullable(),
  /** Why it is paused; null while it is not. */
  pause_reason: pauseReasonSchema.nullable(),
  /** What is known of the next step before it is committed: a mark that outlives a crash in that step. */
  started_attempt: startedAttemptSchema.nullable(),
  /** What the session asks people; it closes with the commit of the next step. */
  question: questionSchema.nullable(),
  /** When a session that waits goes on without having been told anything; null: never by itself. */
  wake_at: timeSchema.nullable(),
  /** Since when the last step lets it wait, so that a resume leads back to waiting; null where it may go on. */
  rests_since: timeSchema.nullable(),
  /** The session whose step started this one, and that step's iteration. */
  spawned_by: z.object({ session_id: idSchema, iteration: z.int().min(0) }).nullable(),
  /** When the step that failed is tried again; null where none waits for that. */
  retry_at: timeSchema.nullable(),
  cost_usd: z.number().min(0),
  /** When the step that runs now began; null between steps. A step that is over within a moment is not noted. */
  step_started_at: timeSchema.nullable(),
});
export type Session = z.infer<typeof sessionSchema>;

/** What a session has of its life when it is made, whether anew or as a fork. */
export const NOTHING_HAPPENED = {
  ended_at: null,
  pause_reason: null,
  started_attempt: null,
  question: null,
  wake_at: null,
  rests_since: null,
  spawned_by: null,
  retry_at: null,
  cost_usd: 0,
  step_started_at: null,
} as const satisfies Partial<Session>;

/** The one way to change a status, with all that goes with it. */
export function changeStatus(
  session: Session,
  status: SessionStatus,
  stop_reason: StopReason | null = null,
  at = now(),
): Session {
  if (!mayChange(session.status, status)) throw new TypeError(`a session that is ${session.status} became ${status}`);
  const changed: Session = {
    ...session,
    status,
    stop_reason,
    pause_reason: status === "paused" ? session.pause_reason : null,
    updated_at: at,
    ended_at: isLive(status) ? null : at,
  };
  // One that a limit stopped may go on, and then waits for what it waited for.
  if (isLive(status) || isStoppedByLimit(changed)) return changed;
  return { ...changed, question: null, wake_at: null, rests_since: null, retry_at: null, step_started_at: null };
}

/** What its step needs is out of reach: `last_error` says what and why, and `retry_at` when it is tried again. */
export const waitsForRetry = (
  session: Pick<Session, "status" | "retry_at" | "last_error">,
): session is Pick<Session, "status"> & { retry_at: string; last_error: string } =>
  session.status === "running" && session.retry_at !== null && session.last_error !== null;

/** Whether that is its model's provider, and not a worker or a server of tools. */
export const waitsForProvider = ({ last_error }: { last_error: string }): boolean =>
  /^(?:provider_down|rate_limited): /.test(last_error);

/** Paused by the runtime, not by a person: somebody has to look before it goes on. */
export const isHeld = ({ status, pause_reason }: Pick<Session, "status" | "pause_reason">): boolean =>
  status === "paused" && pause_reason !== null && pause_reason.kind !== "person";
