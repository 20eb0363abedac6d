import { z } from "zod";
import { type Step, stepSchema } from "./step.ts";

const LONGEST_ERROR = 300;

/** A step without its texts and state: when it ran, what it cost and what it called. For charts of many steps. */
export const stepSpanSchema = stepSchema
  .pick({
    id: true,
    session_id: true,
    iteration: true,
    step_token: true,
    status: true,
    /** Commit time; the last attempt began `latency_ms` earlier. */
    created_at: true,
    latency_ms: true,
    attempts: true,
    crashes: true,
    tokens_used: true,
    cost_usd: true,
    /** The first characters of it. */
    error: true,
  })
  .extend({
    /** The number of guidance pieces consumed. */
    guidance: z.int().min(0),
    /** Why the session rests after this step. */
    rests: z.enum(["asks", "waits"]).nullable(),
    /** In the order they ended. */
    calls: z.array(
      z.object({
        kind: z.enum(["model", "tool"]),
        name: z.string(),
        latency_ms: z.number().min(0),
        failed: z.boolean(),
      }),
    ),
  });
export type StepSpan = z.infer<typeof stepSpanSchema>;

export const spanOf = (step: Omit<Step, "state">): StepSpan => ({
  id: step.id,
  session_id: step.session_id,
  iteration: step.iteration,
  step_token: step.step_token,
  status: step.status,
  created_at: step.created_at,
  latency_ms: step.latency_ms,
  attempts: step.attempts,
  crashes: step.crashes,
  tokens_used: step.tokens_used,
  cost_usd: step.cost_usd,
  error: step.error === null ? null : step.error.slice(0, LONGEST_ERROR),
  guidance: step.guidance.length,
  rests: step.directives?.ask ? "asks" : step.directives?.wait ? "waits" : null,
  calls: step.calls.map(({ kind, name, latency_ms, error }) => ({
    kind,
    name,
    latency_ms,
    failed: error !== undefined,
  })),
});
