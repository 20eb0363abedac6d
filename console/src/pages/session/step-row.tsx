import type { Session, SlimStep } from "../../data/queries.ts";
import { milliseconds, plural, spoken } from "../../ui/format.ts";
import { Time } from "../../ui/time.tsx";

type StepRowProps = {
  step: SlimStep;
  session: Session;
  isSelected: boolean;
  onSelect: (iteration: number) => void;
};

export function StepRow({ step, session, isSelected, onSelect }: StepRowProps) {
  const isParents = step.session_id !== session.session_id;
  return (
    <button
      type="button"
      data-testid="step-row"
      data-iteration={step.iteration}
      aria-pressed={isSelected}
      onClick={() => onSelect(step.iteration)}
      className={`grid w-full grid-cols-[44px_1fr] gap-x-3 border-b border-line px-4 py-2 text-left leading-5 -outline-offset-2 ${isSelected ? "bg-accent-soft" : "bg-surface hover:bg-sunken"}`}
    >
      <span className={`text-right font-mono tabular-nums ${step.status === "error" ? "text-bad" : "text-muted"}`}>
        {step.iteration}
      </span>
      <span className="min-w-0">
        {step.guidance.map((said, index) => (
          <span
            key={step.action_ids[index] ?? index}
            className="mb-1 line-clamp-2 border-l-2 border-accent pl-2 text-accent"
          >
            {spoken(said)}
          </span>
        ))}
        <span className={`line-clamp-3 whitespace-pre-wrap wrap-anywhere ${step.status === "error" ? "text-bad" : ""}`}>
          {step.status === "error" ? step.error : (step.text ?? dataText(step))}
        </span>
        <span className="mt-0.5 flex flex-wrap gap-x-3 text-[12px] text-muted tabular-nums">
          <Time at={step.created_at} />
          <span>{milliseconds(step.latency_ms)}</span>
          {step.tokens_used > 0 && <span>{plural(step.tokens_used, "token")}</span>}
          {step.status === "error" && <span className="text-bad">failed</span>}
          {step.attempts > 1 && <span className="text-warn">attempt {step.attempts}</span>}
          {step.calls.length > 0 && <span className="truncate font-mono">{callNames(step)}</span>}
          {isParents && <span>from its parent</span>}
        </span>
      </span>
    </button>
  );
}

const dataText = ({ data, step_token }: SlimStep): string => (data === null ? `(${step_token})` : JSON.stringify(data));

const NAMED = 3;

/** Distinct names of its calls. */
function callNames({ calls }: SlimStep): string {
  const names = [...new Set(calls.map(({ name }) => name))];
  return names.length > NAMED ? `${names.slice(0, NAMED).join(", ")}, …` : names.join(", ");
}
