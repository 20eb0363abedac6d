import { destroy } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { attempt } from "../../ui/toast.tsx";

type DestroyDialogProps = { session: Pick<Session, "session_id" | "agent_id">; onClose: () => void };

export function DestroyDialog({ session, onClose }: DestroyDialogProps) {
  const run = async () => {
    if (await attempt(() => destroy(session.session_id))) onClose();
  };
  return (
    <Dialog
      title={`Destroy this session of ${session.agent_id}?`}
      description="This cannot be undone. The running step may finish, no other step starts. The history stays, and the session can still be forked."
      onClose={onClose}
    >
      <DialogButtons label="Destroy" isDangerous onConfirm={() => void run()} closeLabel="Keep it" onClose={onClose} />
    </Dialog>
  );
}
