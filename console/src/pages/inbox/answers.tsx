import { useState } from "react";
import { guide, resume } from "../../data/commands.ts";
import type { SessionSummary } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/toast.tsx";
import { DestroyDialog } from "../session/destroy-dialog.tsx";

/** Yes, no, or in other words. */
export function AnswerForm({ session_id }: { session_id: string }) {
  const [text, setText] = useState("");
  const answer = async (said: string) => {
    if (await attempt(() => guide(session_id, said, "next"))) setText("");
  };
  return (
    <form
      className="flex flex-wrap items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") void answer(text.trim());
      }}
    >
      <Button look="primary" onClick={() => void answer("yes")}>
        Yes
      </Button>
      <Button onClick={() => void answer("no")}>No</Button>
      <input
        className="field min-w-40 flex-1"
        aria-label="Another answer"
        placeholder="or in other words…"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button type="submit" disabled={text.trim() === ""}>
        Answer
      </Button>
    </form>
  );
}

export const RetryButton = ({ session_id }: { session_id: string }) => (
  <Button look="primary" onClick={() => void attempt(() => resume(session_id))}>
    Try the step again
  </Button>
);

export function EndButton({ session }: { session: Pick<SessionSummary, "session_id" | "agent_id"> }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button onClick={() => setAsking(true)}>Stop for good…</Button>
      {isAsking && <DestroyDialog session={session} onClose={() => setAsking(false)} />}
    </>
  );
}
