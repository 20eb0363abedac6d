import type { ActionQueue, SubmitOutcome } from "../../queue/action-queue.ts";
import { full, invalid, Problem, unknown } from "./problem.ts";

type Accepted = { action_id: string; agent_id: string; session_id: string };

/** Puts a request into the queue; what the queue refuses becomes a problem. */
export async function submit(queue: ActionQueue, request: Parameters<ActionQueue["submit"]>[0]): Promise<Accepted> {
  return accepted(await queue.submit(request));
}

function accepted(outcome: SubmitOutcome): Accepted {
  switch (outcome.kind) {
    case "accepted": {
      const { kind: _, ...ids } = outcome;
      return ids;
    }
    case "invalid":
      // Within the API the payload's fields are the body's own.
      throw invalid(outcome.errors.map(({ path, message }) => ({ path: path.replace(/^payload\./, ""), message })));
    case "unknown":
      throw unknown(outcome.what);
    case "conflict":
      throw new Problem(409, outcome.detail);
    case "full":
      throw full(outcome);
  }
  return outcome satisfies never;
}
