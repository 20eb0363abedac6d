import { useState } from "react";
import { useSession } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { ForkDialog } from "./fork-dialog.tsx";

/** Forks a session of which only the summary is known: the dialog needs the whole session. */
export function ForkButton({ session_id }: { session_id: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Icon name="fork" className="size-3.5" />
        Fork…
      </Button>
      {isOpen && <LoadedDialog session_id={session_id} onClose={() => setOpen(false)} />}
    </>
  );
}

function LoadedDialog({ session_id, onClose }: { session_id: string; onClose: () => void }) {
  const { data: session } = useSession(session_id);
  return session ? <ForkDialog session={session} iteration={session.iteration} onClose={onClose} /> : null;
}
