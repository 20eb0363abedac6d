import type { Message } from "../domain/conversation.ts";
import { newId, now } from "../domain/ids.ts";
import { askedInState } from "../domain/question.ts";
import { changeStatus, type Session, type SessionStatus, type StopReason } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import { directivesOf, type FrameOut } from "../domain/step-frame.ts";
import type { VersionedMoniker } from "../monikers/catalog.ts";
import type { MonikerKind } from "../monikers/moniker.ts";
import { attemptAfter, type EarlierAttempts, startedAttempt } from "./attempts.ts";
import type { GuidanceSlice } from "./guidance-slice.ts";
import { reachedLimit } from "./limits.ts";
import { restAfter } from "./rest-after.ts";
import { addCost, charged, rowCalls, type Spending } from "./spending.ts";

export type StepResult = {
  frame: FrameOut;
  slice: GuidanceSlice;
  latency_ms: number;
  spent: Spending;
  attempts: number;
};

export type StepFailure = { error: string; latency_ms: number; spent: Spending; earlier: EarlierAttempts };

export type StepCommit = { session: Session; step: Step; message: Message | null };

/** The rows of a successful step and the session after it. */
export function stepCommit(
  session: Session,
  moniker: VersionedMoniker,
  { frame, slice, latency_ms, spent, attempts }: StepResult,
): StepCommit {
  const iteration = session.iteration + 1;
  const at = now();
  const step: Step = {
    ...stepBase(session, moniker, at, { latency_ms, spent, attempts }),
    iteration,
    next_step_token: frame.next_step,
    status: "ok",
    text: frame.text ?? null,
    data: frame.data ?? null,
    state: frame.state,
    guidance: slice.guidance,
    notes: frame.notes ?? null,
    action_ids: slice.action_ids,
    directives: directivesOf(frame),
  };
  const rest = restAfter(step.directives, { at, iteration }, askedInState(frame.state));
  const advanced: Session = {
    ...session,
    iteration,
    step_token: step.step_token,
    next_step_token: frame.next_step,
    result: frame.text ?? frame.data ?? session.result,
    context: frame.state,
    // Guidance that arrived during the step stays for the next one.
    pending_guidance: session.pending_guidance.slice(slice.guidance.length),
    pending_action_ids: session.pending_action_ids.slice(slice.action_ids.length),
    last_error: null,
    question: rest.question,
    wake_at: rest.wake_at,
    rests_since: rest.rests_since,
    started_attempt: rest.started_attempt,
    tokens_used: session.tokens_used + spent.tokens,
    cost_usd: addCost(session.cost_usd, spent.cost_usd),
    retry_at: null,
    step_started_at: null,
    updated_at: at,
  };
  const next = ended(frame, advanced) ?? { status: restingStatus(advanced, moniker.kind), stop_reason: null };
  const hasGuidance = advanced.pending_guidance.length > 0;
  return {
    session: changeStatus(hasGuidance ? withoutWait(advanced) : advanced, next.status, next.stop_reason, at),
    step,
    message: messageOf(session, step),
  };
}

/** Guidance that arrived during the step ends the wait at once. */
const withoutWait = (session: Session): Session => ({ ...session, wake_at: null, rests_since: null });

/** The rows of a step that failed for good. Its guidance stays pending until the session is resumed. */
export function errorCommit(
  session: Session,
  moniker: VersionedMoniker,
  { error, latency_ms, spent, earlier }: StepFailure,
): StepCommit {
  const at = now();
  const step: Step = {
    ...stepBase(session, moniker, at, { latency_ms, spent, attempts: Math.max(1, earlier.begun) }),
    iteration: session.iteration + 1,
    next_step_token: session.next_step_token,
    status: "error",
    text: null,
    data: null,
    state: session.context,
    guidance: [],
    notes: null,
    error,
    action_ids: [],
  };
  const started_attempt = attemptAfter(session, { ...earlier, outage_since: null }, 0);
  return {
    session: { ...charged(changeStatus(session, "error", null, at), spent), last_error: error, started_attempt },
    step,
    message: null,
  };
}

const stepBase = (
  session: Session,
  { version }: VersionedMoniker,
  created_at: string,
  { latency_ms, spent, attempts }: Pick<StepResult, "latency_ms" | "spent" | "attempts">,
) => ({
  id: newId(),
  created_at,
  agent_id: session.agent_id,
  session_id: session.session_id,
  step_token: session.next_step_token,
  latency_ms: Math.round(latency_ms * 1000) / 1000,
  error: null,
  moniker_version: version ?? null,
  tokens_used: spent.tokens,
  cost_usd: spent.cost_usd,
  attempts,
  crashes: startedAttempt(session)?.attempts ?? 0,
  calls: rowCalls(spent.calls),
  directives: null,
});

function ended(frame: FrameOut, session: Session): { status: SessionStatus; stop_reason: StopReason | null } | null {
  if (session.status === "stopping") return null;
  if (frame.done && session.options.stop_on_done) return { status: "done", stop_reason: null };
  const limit = reachedLimit(session, Date.now());
  return limit && { status: "stopped", stop_reason: limit };
}

/** A session waits if its step said so, or if it is reactive with nothing to do. Pending guidance ends that at once. */
function restingStatus(session: Session, kind: MonikerKind): SessionStatus {
  const mayWait = (kind === "reactive" && !session.started_attempt?.is_due) || session.rests_since !== null;
  return mayWait && session.status === "running" && session.pending_guidance.length === 0 ? "waiting" : session.status;
}

function messageOf(session: Session, step: Step): Message | null {
  if (session.conversation_id === null || step.text === null) return null;
  return {
    message_id: newId(),
    conversation_id: session.conversation_id,
    created_at: step.created_at,
    sender_type: "agent",
    user_id: null,
    agent_id: step.agent_id,
    session_id: step.session_id,
    text: step.text,
    data: step.data,
    status: null,
    event_type: "step",
    iteration: step.iteration,
    step_token: step.step_token,
    next_step_token: step.next_step_token,
    notes: step.notes,
    action_ids: [],
  };
}
