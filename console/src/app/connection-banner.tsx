import { connection } from "../data/live.ts";
import { useSignal } from "../data/signal.ts";

export function ConnectionBanner() {
  if (useSignal(connection) !== "lost") return null;
  return (
    <div role="alert" className="border-b border-line bg-warn-soft px-4 py-1.5 font-medium text-warn">
      Connection lost. Reconnecting… Nothing is missed: updates continue where they stopped.
    </div>
  );
}
