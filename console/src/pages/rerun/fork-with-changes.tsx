import type { Step } from "../../../../src/domain/step.ts";
import { go, sessionHref } from "../../app/router.ts";
import { type ForkChanges, fork, type RerunChanges } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { spoken } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { attempt } from "../../ui/toast.tsx";

type ForkWithChangesProps = { session: Session; step: Step; changes: RerunChanges; onDone: () => void };

/** Keeps a rerun as a fork that continues from the step before, with the same changes. */
export function ForkWithChanges({ session, step, changes, onDone }: ForkWithChangesProps) {
  const from = step.iteration - 1;
  // There is no step before the first.
  if (from < 0) return null;
  const run = () =>
    attempt(async () => {
      const { session_id } = await fork(session.session_id, from, forkChangesOf(session, step, changes));
      onDone();
      go(sessionHref(session_id));
    });
  return (
    <div className="mt-3 flex justify-end">
      <Button onClick={() => void run()}>
        <Icon name="fork" className="size-3.5" />
        Fork from step {from} with this
      </Button>
    </div>
  );
}

function forkChangesOf(session: Session, step: Step, { model, guidance, state }: RerunChanges): ForkChanges {
  const guidanceText =
    guidance === undefined ? step.guidance.map(spoken).join("\n") : [guidance].flat().map(spoken).join("\n");
  return {
    ...(guidanceText !== "" && { guidance: guidanceText }),
    ...(state !== undefined && { state }),
    ...(model !== undefined && { options: { ...session.options, model } }),
  };
}
