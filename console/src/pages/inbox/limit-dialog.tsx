import type { SessionSummary } from "../../data/queries.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { LimitForm } from "./limit-form.tsx";

type LimitDialogProps = {
  session: Pick<SessionSummary, "session_id" | "stop_reason" | "options" | "created_at">;
  onClose: () => void;
};

export function LimitDialog({ session, onClose }: LimitDialogProps) {
  return (
    <Dialog
      title="Let it go on"
      description={`It was stopped by ${session.stop_reason}. With a higher limit it goes on where it was.`}
      onClose={onClose}
    >
      <LimitForm session={session} onDone={onClose} />
    </Dialog>
  );
}
