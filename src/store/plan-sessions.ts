import type { Step } from "../domain/step.ts";
import type { Batch, SessionWrite } from "./store.ts";

type Planned<Plan> = { kind: "planned"; plans: Plan[] } | { kind: "fenced"; session_id: string };

/** What each session of a batch writes, with its steps. One that may not be written fences the whole batch. */
export function planSessions<Plan>(
  batch: Batch,
  plan: (write: SessionWrite, steps: Step[]) => Plan | null,
): Planned<Plan> {
  const stepsOf = Map.groupBy(batch.steps ?? [], ({ session_id }) => session_id);
  const plans: Plan[] = [];
  for (const write of batch.sessions ?? []) {
    const { session_id } = write.session;
    const planned = plan(write, stepsOf.get(session_id) ?? []);
    if (!planned) return { kind: "fenced", session_id };
    plans.push(planned);
    stepsOf.delete(session_id);
  }
  if (stepsOf.size > 0)
    throw new TypeError(`steps of session ${stepsOf.keys().next().value} were given without the session`);
  return { kind: "planned", plans };
}
