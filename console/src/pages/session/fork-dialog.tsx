import { type FormEvent, useState } from "react";
import { go, sessionHref } from "../../app/router.ts";
import { ApiError } from "../../data/api.ts";
import { type ForkChanges, fork } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ForkFields, NO_CHANGES } from "./fork-fields.tsx";

type ForkDialogProps = { session: Session; iteration: number; onClose: () => void };

/** A second life from one of the steps, with a word that only the fork hears, and with another beginning if wanted. */
export function ForkDialog({ session, iteration, onClose }: ForkDialogProps) {
  const [from, setFrom] = useState(iteration);
  const [guidance, setGuidance] = useState("");
  // Null while something in them cannot be sent.
  const [changes, setChanges] = useState<ForkChanges | null>(NO_CHANGES);
  const [error, setError] = useState<Error | null>(null);
  const run = async (event: FormEvent) => {
    event.preventDefault();
    if (changes === null) return;
    const said = guidance.trim();
    try {
      const { session_id } = await fork(session.session_id, from, { ...changes, ...(said && { guidance: said }) });
      onClose();
      go(sessionHref(session_id));
    } catch (refusal) {
      setError(refusal instanceof Error ? refusal : new Error(String(refusal)));
    }
  };
  return (
    <Dialog
      title="Fork this session"
      description="A new session goes on from the step you choose. This one is not changed."
      onClose={onClose}
      wide
    >
      <form className="flex flex-col gap-3" onSubmit={(event) => void run(event)}>
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
        <ForkFields
          session={session}
          iteration={from}
          onChange={setChanges}
          problemAt={(name) => problemAt(error, name)}
        />
        {error !== null && !FIELDS.some((name) => problemAt(error, name)) && (
          <p role="alert" className="text-bad wrap-anywhere">
            {error.message}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={changes === null}>
            Fork from step {from}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** They show what is wrong with them. */
const FIELDS = ["state", "params", "options", "moniker"];

/** What the server says of a field or of what is in it. */
function problemAt(error: Error | null, name: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const found = error.errors.filter(({ path }) => path === name || path.startsWith(`${name}.`));
  return found.length === 0
    ? undefined
    : found
        .map(({ path, message }) => (path === name ? message : `${path.slice(name.length + 1)}: ${message}`))
        .join("; ");
}
