import { useState } from "react";
import { resume } from "../../data/commands.ts";
import type { SessionSummary } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/toast.tsx";

export type Limit = "max_steps" | "max_runtime_s" | "max_tokens" | "max_cost_usd";
const NAMES: Readonly<Record<Limit, string>> = {
  max_steps: "steps",
  max_runtime_s: "seconds",
  max_tokens: "tokens",
  max_cost_usd: "dollars",
};

/** A limit's word is not the last, unlike that of whoever destroyed the session. */
export const isStoppedByLimit = ({ status, stop_reason }: Pick<SessionSummary, "status" | "stop_reason">): boolean =>
  status === "stopped" && stop_reason !== null && stop_reason !== "destroyed";

type LimitFormProps = {
  session: Pick<SessionSummary, "session_id" | "stop_reason" | "options" | "created_at">;
  onDone?: () => void;
};

/** Lifts the limit that stopped a session by as much as the reader says. */
export function LimitForm({ session, onDone }: LimitFormProps) {
  const limit = session.stop_reason as Limit;
  const isWhole = limit === "max_steps" || limit === "max_tokens";
  const before = session.options[limit] ?? 0;
  const [more, setMore] = useState(before);
  const extend = async () => {
    // The time that passed since it was stopped counts too, so that it gets all that is given now.
    const base = limit === "max_runtime_s" ? Math.ceil((Date.now() - Date.parse(session.created_at)) / 1000) : before;
    if (await attempt(() => resume(session.session_id, { [limit]: base + more }))) onDone?.();
  };
  return (
    <form
      className="flex flex-wrap items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void extend();
      }}
    >
      <label className="flex items-center gap-2">
        <input
          className="field w-28"
          type="number"
          min={isWhole ? 1 : 0}
          step={isWhole ? 1 : "any"}
          required
          aria-label={`More ${NAMES[limit]}`}
          value={more}
          onChange={(event) => setMore(Number(event.target.value))}
        />
        more {NAMES[limit]}
      </label>
      <Button type="submit" look="primary">
        Extend and go on
      </Button>
    </form>
  );
}
