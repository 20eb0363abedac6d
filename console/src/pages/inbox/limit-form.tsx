import { useState } from "react";
import { resume } from "../../data/commands.ts";
import type { SessionSummary } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { textIn } from "../../ui/field-value.ts";
import { REQUIRED } from "../../ui/read-object.ts";
import { attempt } from "../../ui/toast.tsx";

export type Limit = "max_steps" | "max_runtime_s" | "max_tokens" | "max_cost_usd";
const NAMES: Readonly<Record<Limit, string>> = {
  max_steps: "steps",
  max_runtime_s: "seconds",
  max_tokens: "tokens",
  max_cost_usd: "dollars",
};

/** Such a session can continue once the limit is raised; a destroyed one cannot. */
export const isStoppedByLimit = ({ status, stop_reason }: Pick<SessionSummary, "status" | "stop_reason">): boolean =>
  status === "stopped" && stop_reason !== null && stop_reason !== "destroyed";

type LimitFormProps = {
  session: Pick<SessionSummary, "session_id" | "stop_reason" | "options" | "created_at">;
};

/** Raises the limit that stopped a session. */
export function LimitForm({ session }: LimitFormProps) {
  const limit = session.stop_reason as Limit;
  const isWhole = limit === "max_steps" || limit === "max_tokens";
  const before = session.options[limit] ?? 0;
  const [problem, setProblem] = useState<string>();
  const extend = async (typed: string) => {
    const more = Number(typed);
    const wrong = problemIn(typed, isWhole);
    setProblem(wrong);
    if (wrong !== undefined) return;
    // Time that passed since the session stopped is added, so that the whole extension is left.
    const base = limit === "max_runtime_s" ? Math.ceil((Date.now() - Date.parse(session.created_at)) / 1000) : before;
    await attempt(() => resume(session.session_id, { [limit]: base + more }));
  };
  return (
    <form
      noValidate
      className="flex flex-wrap items-end gap-x-3 gap-y-1"
      onSubmit={(event) => {
        event.preventDefault();
        void extend(textIn(new FormData(event.currentTarget), "more").trim());
      }}
    >
      <Field
        name="more"
        label={`More ${NAMES[limit]}`}
        schema={{ type: isWhole ? "integer" : "number", minimum: isWhole ? 1 : 0, default: before }}
        isRequired
        problem={problem}
      />
      <Button type="submit" look="primary" className="mb-1">
        Extend and resume
      </Button>
    </form>
  );
}

function problemIn(typed: string, isWhole: boolean): string | undefined {
  if (typed === "") return REQUIRED;
  const more = Number(typed);
  if (!(more > 0)) return "This must be more than 0.";
  return isWhole && !Number.isInteger(more) ? "This must be a whole number." : undefined;
}
