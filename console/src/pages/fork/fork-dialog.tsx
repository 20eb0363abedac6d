import { type FormEvent, useState } from "react";
import { go, sessionHref } from "../../app/router.ts";
import { ApiError } from "../../data/api.ts";
import { type ForkChanges, fork } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { Field } from "../../ui/field.tsx";
import { LONG_TEXT } from "../../ui/field-value.ts";
import { REQUIRED } from "../../ui/read-object.ts";
import { ForkFields, NO_CHANGES } from "./fork-fields.tsx";

type ForkDialogProps = { session: Session; iteration: number; onClose: () => void };

/** A new session that continues from one of the steps, with guidance that only the fork gets, and other values if wanted. */
export function ForkDialog({ session, iteration, onClose }: ForkDialogProps) {
  const [typed, setTyped] = useState(String(iteration));
  const [guidance, setGuidance] = useState("");
  // Null while something is invalid.
  const [changes, setChanges] = useState<ForkChanges | null>(NO_CHANGES);
  const [error, setError] = useState<Error | null>(null);
  const from = iterationIn(typed, session.iteration);
  const run = async (event: FormEvent) => {
    event.preventDefault();
    if (changes === null || from === null) return;
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
      description="A new session continues from the step you choose. This one does not change."
      onClose={onClose}
      wide
    >
      <form noValidate className="flex flex-col gap-3" onSubmit={(event) => void run(event)}>
        <Field
          name="iteration"
          label="From step"
          schema={{ type: "integer", minimum: 0, maximum: session.iteration, default: iteration }}
          isRequired
          problem={stepProblem(typed, session.iteration)}
          onChange={setTyped}
        />
        <Field
          name="guidance"
          label="Guidance for its first step"
          schema={{ type: "string", maxLength: LONG_TEXT }}
          isRequired={false}
          problem={undefined}
          onChange={setGuidance}
        />
        <ForkFields
          session={session}
          iteration={from ?? iteration}
          onChange={setChanges}
          problemAt={(name) => problemAt(error, name)}
        />
        {error !== null && !FIELDS.some((name) => problemAt(error, name)) && (
          <p role="alert" className="text-bad wrap-anywhere">
            {error.message}
          </p>
        )}
        <DialogButtons
          label={from === null ? "Fork" : `Fork from step ${from}`}
          isDisabled={changes === null || from === null}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

function iterationIn(typed: string, last: number): number | null {
  const value = Number(typed);
  return typed.trim() !== "" && Number.isInteger(value) && value >= 0 && value <= last ? value : null;
}

function stepProblem(typed: string, last: number): string | undefined {
  if (iterationIn(typed, last) !== null) return undefined;
  return typed.trim() === "" ? REQUIRED : `Choose a step from 0 to ${last}.`;
}

/** Fields that show their own problems. */
const FIELDS = ["state", "params", "options", "moniker"];

/** What the server rejected in a field or within it. */
function problemAt(error: Error | null, name: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const problems = error.errors.filter(({ path }) => path === name || path.startsWith(`${name}.`));
  return problems.length === 0
    ? undefined
    : problems
        .map(({ path, message }) => (path === name ? message : `${path.slice(name.length + 1)}: ${message}`))
        .join("; ");
}
