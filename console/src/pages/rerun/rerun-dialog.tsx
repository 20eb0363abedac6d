import { type FormEvent, useEffect, useRef, useState } from "react";
import type { JsonObject } from "../../../../src/domain/json.ts";
import type { Rerun } from "../../../../src/domain/rerun.ts";
import type { Step } from "../../../../src/domain/step.ts";
import { ApiError } from "../../data/api.ts";
import { type RerunChanges, rerun } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { spoken } from "../../ui/format.ts";
import { JsonField, useJsonText } from "../../ui/json-field.tsx";
import { ModelField } from "../../ui/model-field.tsx";
import { Age } from "../../ui/time.tsx";
import { ForkWithChanges } from "./fork-with-changes.tsx";
import { RerunResult } from "./rerun-result.tsx";

type RerunDialogProps = { session: Session; step: Step; before: Step | undefined; onClose: () => void };
type Run =
  | { kind: "idle" }
  | { kind: "running"; since: string }
  | { kind: "ran"; rerun: Rerun; changes: RerunChanges }
  | { kind: "refused"; error: Error };

/** Runs a recorded step once more, on today's code and with these changes, and shows the differences. */
export default function RerunDialog({ session, step, before, onClose }: RerunDialogProps) {
  const [model, setModel] = useState("");
  const [guidance, setGuidance] = useState<string | null>(null);
  const state = useJsonText(step.status === "error" ? step.state : (before?.state ?? {}));
  const [run, setRun] = useState<Run>({ kind: "idle" });
  // Closing the dialog cancels the run.
  const leaving = useRef(new AbortController());
  useEffect(() => {
    leaving.current = new AbortController();
    return () => leaving.current.abort();
  }, []);
  const start = async (event: FormEvent) => {
    event.preventDefault();
    const changes: RerunChanges = {
      ...(model.trim() !== "" && { model: model.trim() }),
      ...(guidance !== null && { guidance: guidance.trim() === "" ? [] : guidance.trim() }),
      ...(state.isEdited && { state: state.value as JsonObject }),
    };
    setRun({ kind: "running", since: new Date().toISOString() });
    const { signal } = leaving.current;
    try {
      const answer = await rerun(session.session_id, step.iteration, changes, signal);
      setRun({ kind: "ran", rerun: answer, changes });
    } catch (error) {
      if (!signal.aborted)
        setRun({ kind: "refused", error: error instanceof Error ? error : new Error(String(error)) });
    }
  };
  return (
    <Dialog
      title={`Rerun step ${step.iteration}`}
      description="Runs the step once more on today's code, with the input it had then. Nothing is stored, no message is sent, and tools that would change something refuse to run."
      onClose={onClose}
      wide
    >
      <form className="flex flex-col gap-3" onSubmit={(event) => void start(event)}>
        <ModelField
          model={model}
          onChange={setModel}
          hint={`Empty: ${session.options.model ?? "the server's default"}.`}
          problem={problemAt(run, "model")}
        />
        <label>
          <span className="mb-1 block font-medium">Guidance</span>
          <textarea
            className="field min-h-14"
            value={guidance ?? step.guidance.map(spoken).join("\n")}
            placeholder="The step had none."
            onChange={(event) => setGuidance(event.target.value)}
          />
        </label>
        <details>
          <summary className="font-medium">State before the step</summary>
          <div className="mt-2">
            <JsonField label="State" json={state} problem={problemAt(run, "state")} />
          </div>
        </details>
        <Refusal run={run} />
        <DialogButtons
          label={run.kind === "ran" ? "Run it again" : "Run it"}
          isDisabled={run.kind === "running" || state.isWrong}
          closeLabel="Close"
          onClose={onClose}
        >
          {run.kind === "running" && (
            <span role="status">
              Running for <Age at={run.since} />…
            </span>
          )}
        </DialogButtons>
      </form>
      {run.kind === "ran" && (
        <>
          <RerunResult step={step} rerun={run.rerun} />
          <ForkWithChanges session={session} step={step} changes={run.changes} onDone={onClose} />
        </>
      )}
    </Dialog>
  );
}

function problemAt(run: Run, path: string): string | undefined {
  if (run.kind !== "refused" || !(run.error instanceof ApiError)) return undefined;
  return run.error.errors.find((one) => one.path === path)?.message;
}

function Refusal({ run }: { run: Run }) {
  if (run.kind !== "refused" || ["model", "state"].some((path) => problemAt(run, path))) return null;
  return (
    <p role="alert" className="text-bad wrap-anywhere">
      {run.error.message}
    </p>
  );
}
