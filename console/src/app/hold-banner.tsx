import { release } from "../data/commands.ts";
import { useIsHolding } from "../data/queries.ts";
import { useReconnected } from "../data/use-reconnected.ts";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { attempt, tell } from "../ui/toast.tsx";

/** Says that the server was started with its sessions held, and has a button that releases them. */
export function HoldBanner() {
  const { data: isHolding, refetch } = useIsHolding();
  // A server that comes back may hold its sessions.
  useReconnected(() => void refetch());
  if (!isHolding) return null;
  const releaseAll = () =>
    attempt(async () => {
      const { released } = await release({ all: true });
      tell(`${plural(released, "session")} released.`);
      await refetch();
    });
  return (
    <div
      role="status"
      data-testid="hold-banner"
      className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-warn-soft px-4 py-1.5 text-warn"
    >
      <span className="font-medium">
        The server was started with its sessions held. They run no steps until you release them.
      </span>
      <Button className="ml-auto" onClick={() => void releaseAll()}>
        Release all
      </Button>
    </div>
  );
}
