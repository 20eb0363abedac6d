import { useState } from "react";
import { guide } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { MessageField } from "../../ui/message-field.tsx";
import { attempt, tell } from "../../ui/toast.tsx";
import { isStoppedByLimit } from "../inbox/limit-form.tsx";

/** Sends guidance to the next step, or to the running one, which then starts over. */
export function GuideForm({ session }: { session: Session }) {
  const [text, setText] = useState("");
  const [mode, setMode] = useState<"next" | "now">("next");
  const canHear = session.status !== "done" && session.status !== "stopped" && session.status !== "stopping";
  const send = async () => {
    if (text.trim() === "") return;
    if (!(await attempt(() => guide(session.session_id, text.trim(), mode)))) return;
    setText("");
    tell("Sent. See Receipts for what becomes of it.");
  };
  if (!canHear)
    return (
      <p className="border-t border-line bg-surface px-4 py-3 text-muted">
        {isStoppedByLimit(session)
          ? "A limit stopped the session. Extend the limit to guide it again, or fork it from one of its steps."
          : `The session is ${session.status}. Fork it to continue from one of its steps.`}
      </p>
    );
  return (
    <form
      className="flex flex-col gap-2 border-t border-line bg-surface p-3"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <MessageField
        data-guide
        aria-label="Guidance"
        placeholder="Guide the agent…"
        className="field resize-y"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onSend={() => void send()}
      />
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5">
        <fieldset className="flex gap-3">
          <legend className="sr-only">When</legend>
          <Mode value="next" chosen={mode} onChoose={setMode} label="At the next step" />
          <Mode
            value="now"
            chosen={mode}
            onChoose={setMode}
            label="Now"
            hint="Interrupts the running step and starts it again with your guidance"
          />
        </fieldset>
        <Button type="submit" look="primary" className="ml-auto" disabled={text.trim() === ""}>
          Send guidance
        </Button>
      </div>
    </form>
  );
}

type ModeProps = {
  value: "next" | "now";
  chosen: "next" | "now";
  onChoose: (mode: "next" | "now") => void;
  label: string;
  hint?: string;
};
const Mode = ({ value, chosen, onChoose, label, hint }: ModeProps) => (
  <label className="flex items-center gap-1.5" title={hint}>
    <input type="radio" name="mode" checked={chosen === value} onChange={() => onChoose(value)} />
    {label}
  </label>
);
