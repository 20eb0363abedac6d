import { z } from "zod";
import { idSchema, now, timeSchema } from "./ids.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { unknownWords } from "./nearest-word.ts";
import { questionSchema } from "./question.ts";

export const SESSION_STATUSES = ["running", "waiting", "paused", "stopping", "stopped", "done", "error"] as const;
export const sessionStatusSchema = z.enum(SESSION_STATUSES);
export type SessionStatus = z.infer<typeof sessionStatusSchema>;

const countSchema = z.int().min(0);
/** The number of sessions in each status. */
export const sessionCountsSchema = z.object(
  Object.fromEntries(SESSION_STATUSES.map((status) => [status, countSchema])) as Record<
    SessionStatus,
    typeof countSchema
  >,
);

/**
 * The status machine: every legal change; `changeStatus` makes no other. A status may always stay the same.
 *
 * - `running` becomes `waiting` when a reactive moniker has nothing to do, `done` when the task finishes, `stopped` when a
 *   limit is reached, and `error` when a step fails for good.
 * - `paused` lets the running step finish, and the session may end with it.
 * - `stopping` is a destroyed session whose step may finish.
 * - `error`, and `stopped` because of a limit, continue after a resume.
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

/** A live session has a runner or gets one after a restart. The others rest until a person resumes them, or forever. */
export const LIVE_STATUSES = ["running", "waiting", "paused", "stopping"] as const satisfies SessionStatus[];
const live: ReadonlySet<SessionStatus> = new Set(LIVE_STATUSES);
export const isLive = (status: SessionStatus): boolean => live.has(status);

const stopReasonSchema = z.enum(["max_steps", "max_runtime_s", "max_tokens", "max_cost_usd", "destroyed"]);
export type StopReason = z.infer<typeof stopReasonSchema>;

/** A limit's stop is not final: `resume` with a higher limit continues the session. */
export const isStoppedByLimit = ({ status, stop_reason }: { status: SessionStatus; stop_reason: StopReason | null }) =>
  status === "stopped" && stop_reason !== null && stop_reason !== "destroyed";

export const retrySchema = z.object({
  /** Attempts per step, including the first. Default 3; 1 means no retry. */
  max_attempts: z.int().min(1).max(100).default(3),
  /** Delay before the second attempt in milliseconds, doubled for each further one. Default 500. */
  backoff_ms: z.int().min(0).max(3_600_000).default(500),
  /**
   * How long, in seconds, a step is retried while its model is unreachable, without using up attempts. Default 900; 0: it
   * counts like any error.
   */
  outage_s: z.number().min(0).max(2_592_000).optional(),
});

const toolGlobsSchema = z.array(z.string().min(1).max(200)).max(200);
/**
 * The policy for tools a session's moniker asks for, as globs over names (`<server>/<tool>`): the first list that matches
 * decides.
 */
const toolPolicySchema = z.strictObject({
  deny: toolGlobsSchema.optional(),
  ask: toolGlobsSchema.optional(),
  run: toolGlobsSchema.optional(),
});
export type ToolGlobs = z.infer<typeof toolPolicySchema>;

/** How the session's model answers. An absent setting is left to the provider. */
const modelSettingsSchema = z.object({
  temperature: z.number().min(0).max(2).optional(),
  max_output_tokens: z.int().min(1).optional(),
  /** How much the model thinks before it answers, if it supports that. */
  reasoning: z.enum(["none", "minimal", "low", "medium", "high"]).optional(),
});
export type ModelSettings = z.infer<typeof modelSettingsSchema>;

const modelNameSchema = z
  .string()
  .max(200)
  .regex(/^[^/\s]+\/\S+$/, "provider/model is expected");

/** Default time limit of a step, in seconds. */
export const DEFAULT_STEP_TIMEOUT_S = 600;

type Nested = <Schema extends z.ZodObject>(schema: Schema, kind: string) => Schema;

/** The fields of the options; `nested` sets how strictly the objects inside them are checked. */
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
    .describe(`Time limit of one attempt at a step, in seconds. Default ${DEFAULT_STEP_TIMEOUT_S}.`),
  retry: nested(retrySchema, "a field of retry").optional(),
  /** A session started by a step keeps running when the session that started it is destroyed. */
  outlives_parent: z.boolean().optional(),
  /** Globs over step tokens: the session is held before a matching step until a person resumes it. */
  hold_before: z.array(z.string().min(1).max(500)).max(100).optional(),
  tools: nested(toolPolicySchema, "a list of tools")
    .optional()
    .describe("Globs over tool names; the first list that matches, in the order deny, ask, run, decides."),
  model: modelNameSchema.optional().describe("provider/model. Default: EVERSTEP_MODEL."),
  model_settings: nested(modelSettingsSchema, "a setting of the model")
    .optional()
    .describe("How the model answers. Default: the provider's settings."),
  fallback_models: z
    .array(modelNameSchema)
    .max(5)
    .optional()
    .describe("Tried in order if the model is unreachable or refuses the request."),
});

/** Options as they are stored. Fields of another version are ignored, not refused. */
export const sessionOptionsSchema = z.object(optionFields((schema) => schema));

/** Refuses unknown fields and suggests the closest known one. */
const onlyKnown: Nested = (schema, kind) =>
  z.strictObject(schema.shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys" ? unknownWords(issue.keys, kind, Object.keys(schema.shape)) : undefined,
  }) as unknown as typeof schema;

/** Options as clients send them. Unknown names are refused: a misspelled limit would limit nothing. */
export const requestedOptionsSchema = onlyKnown(z.object(optionFields(onlyKnown)), "an option");
export type SessionOptions = z.infer<typeof sessionOptionsSchema>;

/** Why a session is paused: a person asked for it, it reached a breakpoint, or its process crashed too often in one step. */
const pauseReasonSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("person"), user_id: z.string().optional(), reason: z.string().optional() }),
  z.object({ kind: z.literal("breakpoint"), step_token: z.string() }),
  z.object({ kind: z.literal("crashes"), step_token: z.string(), attempts: z.int().min(1) }),
]);

/** How an attempt ended without a commit, if that was written. */
const attemptEndSchema = z.enum(["error", "interrupt", "timeout"]);

const startedAttemptSchema = z.object({
  /** The step this record is about; for any other step it means nothing. */
  iteration: z.int().min(0),
  /** Crashes in a row during this step. */
  attempts: z.int().min(0),
  /** The step must not run twice without a person's consent: each attempt is written here before it begins. */
  once: z.boolean().optional(),
  /** Attempts started, as far as is known; exact for a step marked `once`. */
  begun: z.int().min(0).optional(),
  /** How the last attempt ended; absent if the process died during it. */
  ended: attemptEndSchema.optional(),
  /** When the outage of something the step needs began, if every attempt since then has hit it. */
  outage_since: timeSchema.optional(),
  /** A person let the step pass a breakpoint. */
  is_released: z.literal(true).optional(),
  /** The session must run without new guidance: its wait ended, or its last step asked for it. */
  is_due: z.literal(true).optional(),
});
export type StartedAttempt = z.infer<typeof startedAttemptSchema>;

/** A row of the table `agent_state`: the current state of a session. */
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
  /** The moniker's state after the last committed step. */
  context: jsonObjectSchema,
  pending_guidance: z.array(jsonSchema),
  /** The actions that delivered `pending_guidance`, in the same order. */
  pending_action_ids: z.array(idSchema),
  last_error: z.string().nullable(),
  tokens_used: z.int().min(0),
  /** The action that created the session, so that a repeated request gets the same answer. */
  created_action_id: idSchema,
  parent_session_id: idSchema.nullable(),
  /** The last iteration that a fork shares with its parent. */
  parent_iteration: z.int().min(0).nullable(),
  created_at: timeSchema,
  updated_at: timeSchema,
  ended_at: timeSchema.nullable(),
  /** Why the session is paused; null if it is not. */
  pause_reason: pauseReasonSchema.nullable(),
  /** What is known about the next step before its commit. It survives a crash during that step. */
  started_attempt: startedAttemptSchema.nullable(),
  /** The session's open question; the commit of the next step closes it. */
  question: questionSchema.nullable(),
  /** When a waiting session continues without guidance; null: never. */
  wake_at: timeSchema.nullable(),
  /** Since when the last step lets the session wait, so that a resume returns to waiting; null if it may continue. */
  rests_since: timeSchema.nullable(),
  /** The session whose step started this one, and that step's iteration. */
  spawned_by: z.object({ session_id: idSchema, iteration: z.int().min(0) }).nullable(),
  /** When the failed step is retried; null if no retry is pending. */
  retry_at: timeSchema.nullable(),
  cost_usd: z.number().min(0),
  /** When the running step began; null between steps. Very short steps are not recorded. */
  step_started_at: timeSchema.nullable(),
});
export type Session = z.infer<typeof sessionSchema>;

/** The history fields of a session that was just created or forked. */
export const NEW_SESSION_HISTORY = {
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

/** The only way to change a status, together with the fields that depend on it. */
export function changeStatus(
  session: Session,
  status: SessionStatus,
  stop_reason: StopReason | null = null,
  at = now(),
): Session {
  if (!mayChange(session.status, status))
    throw new TypeError(`illegal status change from ${session.status} to ${status}`);
  const changed: Session = {
    ...session,
    status,
    stop_reason,
    pause_reason: status === "paused" ? session.pause_reason : null,
    updated_at: at,
    ended_at: isLive(status) ? null : at,
  };
  // A session that a limit stopped may continue, and then waits for the same thing as before.
  if (isLive(status) || isStoppedByLimit(changed)) return changed;
  return { ...changed, question: null, wake_at: null, rests_since: null, retry_at: null, step_started_at: null };
}

/** The step's dependency is unreachable: `last_error` says what and why, `retry_at` when it is retried. */
export const waitsForRetry = (
  session: Pick<Session, "status" | "retry_at" | "last_error">,
): session is Pick<Session, "status"> & { retry_at: string; last_error: string } =>
  session.status === "running" && session.retry_at !== null && session.last_error !== null;

/** Whether the unreachable dependency is the model's provider, not a worker or a tool server. */
export const waitsForProvider = ({ last_error }: { last_error: string }): boolean =>
  /^(?:provider_down|rate_limited): /.test(last_error);

/** Paused by the runtime, not by a person: somebody must look at it before it continues. */
export const isHeld = ({ status, pause_reason }: Pick<Session, "status" | "pause_reason">): boolean =>
  status === "paused" && pause_reason !== null && pause_reason.kind !== "person";
