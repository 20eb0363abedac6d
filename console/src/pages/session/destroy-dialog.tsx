import { destroy } from "../../data/commands.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt } from "../../ui/toast.tsx";

type DestroyDialogProps = { session: Pick<Session, "session_id" | "agent_id">; onClose: () => void };

export function DestroyDialog({ session, onClose }: DestroyDialogProps) {
  const run = async () => {
    if (await attempt(() => destroy(session.session_id))) onClose();
  };
  return (
    <Dialog
      title={`Destroy this session of ${session.agent_id}?`}
      description="It ends for good: the running step may finish, no other starts. Its history stays, and it can still be forked."
      onClose={onClose}
    >
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Keep it</Button>
        <Button look="danger" onClick={() => void run()}>
          Destroy
        </Button>
      </div>
    </Dialog>
  );
}
