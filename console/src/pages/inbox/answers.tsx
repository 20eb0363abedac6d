import { useState } from "react";
import { resume } from "../../data/commands.ts";
import type { SessionSummary } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/toast.tsx";
import { DestroyDialog } from "../session/destroy-dialog.tsx";

export const RetryButton = ({ session_id }: { session_id: string }) => (
  <Button look="primary" onClick={() => void attempt(() => resume(session_id))}>
    Try the step again
  </Button>
);

export function DestroyButton({ session }: { session: Pick<SessionSummary, "session_id" | "agent_id"> }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button onClick={() => setAsking(true)}>Destroy…</Button>
      {isAsking && <DestroyDialog session={session} onClose={() => setAsking(false)} />}
    </>
  );
}
