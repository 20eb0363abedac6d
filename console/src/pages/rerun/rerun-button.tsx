import { lazy, Suspense, useState } from "react";
import type { Step } from "../../../../src/domain/step.ts";
import type { Session } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";

const RerunDialog = lazy(() => import("./rerun-dialog.tsx"));

export function RerunButton({ session, step, before }: { session: Session; step: Step; before: Step | undefined }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Icon name="play" className="size-3.5" />
        Rerun…
      </Button>
      {isOpen && (
        <Suspense fallback={null}>
          <RerunDialog session={session} step={step} before={before} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
