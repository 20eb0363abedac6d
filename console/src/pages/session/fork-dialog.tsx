import { useState } from "react";
import { go, sessionHref } from "../../app/router.ts";
import { fork } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt } from "../../ui/toast.tsx";

type ForkDialogProps = { session: Session; iteration: number; onClose: () => void };

/** A second life from one of the steps, with a word that only the fork hears. */
export function ForkDialog({ session, iteration, onClose }: ForkDialogProps) {
  const [from, setFrom] = useState(iteration);
  const [guidance, setGuidance] = useState("");
  const run = () =>
    attempt(async () => {
      const { session_id } = await fork(session.session_id, from, guidance.trim());
      onClose();
      go(sessionHref(session_id));
    });
  return (
    <Dialog
      title="Fork this session"
      description="A new session goes on from the step you choose. This one is not changed."
      onClose={onClose}
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <label>
          <span className="mb-1 block font-medium">From step</span>
          <input
            className="field"
            type="number"
            min={0}
            max={session.iteration}
            value={from}
            onChange={(event) => setFrom(Number(event.target.value))}
          />
        </label>
        <label>
          <span className="mb-1 block font-medium">Guidance for its first step (optional)</span>
          <textarea className="field min-h-20" value={guidance} onChange={(event) => setGuidance(event.target.value)} />
        </label>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Fork from step {from}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
