import type { Session, StopReason } from "../domain/session.ts";

/** The limit that a session has reached, if any. A fork counts its own steps only. */
export function reachedLimit(session: Session, nowMs: number): StopReason | null {
  const { options } = session;
  const ownSteps = session.iteration - (session.parent_iteration ?? -1);
  if (options.max_steps !== undefined && ownSteps >= options.max_steps) return "max_steps";
  if (options.max_tokens !== undefined && session.tokens_used >= options.max_tokens) return "max_tokens";
  if (options.max_cost_usd !== undefined && session.cost_usd >= options.max_cost_usd) return "max_cost_usd";
  if (runtimeLeftMs(session, nowMs) <= 0) return "max_runtime_s";
  return null;
}

/** Milliseconds until the session reaches `max_runtime_s`, counted from its creation. */
export function runtimeLeftMs({ options, created_at }: Pick<Session, "options" | "created_at">, nowMs: number): number {
  if (options.max_runtime_s === undefined) return Number.POSITIVE_INFINITY;
  return Date.parse(created_at) + options.max_runtime_s * 1000 - nowMs;
}

/** Caps a wait at `max_runtime_s`, plus a little so that the limit is reached when the wait ends. */
export const waitWithin = (session: Session, ms: number): number =>
  Math.min(ms, Math.max(0, runtimeLeftMs(session, Date.now())) + 2);
