import { z } from "zod";
import type { ActionQueue } from "../../actions/action-queue.ts";
import type { Refusal } from "../../actions/refusal.ts";
import { type JsonObject, jsonObjectSchema } from "../../domain/json.ts";
import { full, invalid, Problem, unknown } from "./problem.ts";
import { RecentRequests } from "./recent-requests.ts";

type AcceptedIds = { action_id: string; agent_id: string; session_id: string };

const recentRequests = new WeakMap<ActionQueue, RecentRequests>();

function recentOf(queue: ActionQueue): RecentRequests {
  const recent = recentRequests.get(queue) ?? new RecentRequests();
  recentRequests.set(queue, recent);
  return recent;
}

/** Submits a request; throws a refusal as a problem. */
export async function submit(queue: ActionQueue, request: unknown): Promise<AcceptedIds> {
  const outcome = await recentOf(queue).once(request, () => queue.submit(request));
  if (outcome.kind !== "accepted") throw refused(outcome);
  const { kind: _, ...ids } = outcome;
  return ids;
}

export function refused(refusal: Refusal): Problem {
  switch (refusal.kind) {
    case "invalid":
      // In the API the payload's fields are the body's own.
      return invalid(refusal.errors.map(({ path, message }) => ({ path: path.replace(/^payload\./, ""), message })));
    case "unknown":
      return unknown(refusal.what);
    case "conflict":
      return new Problem(409, refusal.detail);
    case "full":
      return full(refusal);
  }
  return refusal satisfies never;
}

/** What every route that submits an action accepts beside its payload: the sender, and metadata of the action. */
export const senderFields = {
  user_id: z.string().min(1).max(500).optional().describe("The sender; stored as `metadata.user_id`."),
  metadata: jsonObjectSchema
    .optional()
    .describe("Stored with the action. A `request_id` in it makes the request idempotent."),
};

type Sender = { user_id?: string | undefined; metadata?: JsonObject | undefined };

/** A body's payload, and the metadata of its action. */
export function splitBody<Body extends Sender>(
  body: Body,
): { payload: Omit<Body, keyof Sender>; metadata: JsonObject } {
  const { user_id, metadata, ...payload } = body;
  return { payload, metadata: user_id === undefined ? (metadata ?? {}) : { ...metadata, user_id } };
}
