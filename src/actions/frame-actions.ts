import { idSchema } from "../domain/ids.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { FrameAction } from "../domain/step-frame.ts";
import { StepError } from "../monikers/moniker.ts";
import type { StepRows } from "../sessions/runner-dependencies.ts";
import type { ActionQueue, Ready } from "./action-queue.ts";
import type { Target } from "./action-request.ts";
import type { Refusal } from "./refusal.ts";

type Sender = Pick<Session, "agent_id" | "session_id"> & { iteration: number; traceparent?: string | undefined };

/**
 * Builds the rows of a frame's actions without writing them; they are committed together with the step.
 *
 * FRAME-1  A session that a frame creates gets an id derived from the step, unless the frame names one, so a retried step
 *          creates no session twice. A named session that already exists for the same agent and moniker is left unchanged.
 * FRAME-2  An impossible action fails the step and names its index in `actions`; nothing of the frame is written.
 */
export async function prepareFrameActions(
  queue: Pick<ActionQueue, "prepare" | "existingSession">,
  requests: readonly FrameAction[],
  sender: Sender,
): Promise<StepRows> {
  const rows: StepRows = { sessions: [], actions: [], participants: [], written: () => {} };
  const ready: Ready[] = [];
  const created = new Map<string, Target>();
  rows.written = () => {
    for (const { room } of ready) room?.written();
  };
  try {
    for (const [place, request] of requests.entries()) {
      const prepared = await queue.prepare(toRequest(request, sender, place), created);
      if (prepared.kind !== "prepared") throw refused(prepared, place);
      ready.push(prepared);
      await add(rows, prepared, { queue, request, sender, place, created });
    }
  } catch (error) {
    rows.written();
    throw error;
  }
  return rows;
}

type Addition = {
  queue: Pick<ActionQueue, "existingSession">;
  request: FrameAction;
  sender: Sender;
  place: number;
  created: Map<string, Target>;
};

async function add(
  rows: StepRows,
  prepared: Ready,
  { queue, request, sender, place, created }: Addition,
): Promise<void> {
  const newRows = prepared.rows();
  if (newRows.kind === "action") {
    rows.actions.push(newRows.action);
    return;
  }
  const { session, batch, named_moniker } = newRows;
  const { session_id, agent_id } = session;
  if (created.has(session_id)) throw badAction(place, `session ${session_id} is created twice`);
  // FRAME-1.
  const existing = await queue.existingSession(session, named_moniker);
  if (existing.kind === "conflict") throw badAction(place, existing.detail);
  if (existing.kind === "same") return;
  const { iteration } = sender;
  const spawned_by = request.action_type === "agent_create" ? { session_id: sender.session_id, iteration } : null;
  created.set(session_id, { agent_id, session_id });
  rows.sessions.push({ ...session, spawned_by });
  rows.actions.push(...(batch.actions ?? []));
  rows.participants.push(...(batch.participants ?? []));
}

/** An action without a target means the session itself; a creation without an agent means the session's own agent. */
function toRequest(
  { moniker, params, options, conversation_id, payload, ...request }: FrameAction,
  { agent_id, session_id, iteration, traceparent }: Sender,
  place: number,
): object {
  const fields = Object.entries({ moniker, params, options, conversation_id });
  const extra = Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as JsonObject;
  const traced = traceparent === undefined ? {} : { traceparent };
  const metadata = { ...request.metadata, sent_by: { session_id, iteration }, ...traced };
  const common = { ...request, payload: { ...payload, ...extra }, metadata };
  if (request.action_type !== "agent_create")
    return request.session_id === undefined && request.agent_id === undefined ? { ...common, session_id } : common;
  const child_id = request.session_id ?? `${session_id}.${iteration}.${place}`;
  if (!idSchema.safeParse(child_id).success)
    throw badAction(place, `the id ${child_id} is too long; name a session_id of up to 200 characters`);
  return { ...common, agent_id: request.agent_id ?? agent_id, session_id: child_id };
}

/** FRAME-2. Only a full session is worth a retry: it may have room later. */
function refused(refusal: Refusal, place: number): StepError {
  switch (refusal.kind) {
    case "invalid": {
      const [error] = refusal.errors;
      return badAction(place, `${error?.path.replace(/^payload\./, "")}: ${error?.message}`);
    }
    case "unknown":
      return badAction(place, `the ${refusal.what} is unknown`);
    case "conflict":
      return badAction(place, refusal.detail);
    case "full":
      return new StepError("guidance_full", `actions[${place}]: ${refusal.detail}`, {
        retryable: true,
        retry_after_ms: refusal.retry_after_s * 1000,
      });
  }
  return refusal satisfies never;
}

const badAction = (place: number, why: string): StepError =>
  new StepError("bad_action", `actions[${place}]: ${why}`, { retryable: false });
