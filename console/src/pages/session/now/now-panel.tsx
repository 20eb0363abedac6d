import type { SlimStep } from "../../../data/queries.ts";
import { useSignal } from "../../../data/signal.ts";
import { spoken } from "../../../ui/format.ts";
import { Json } from "../../../ui/json.tsx";
import { Markdown, RawSwitch } from "../../../ui/markdown.tsx";
import { Section } from "../../../ui/section.tsx";
import { QuestionView } from "../../question/question-view.tsx";
import type { TabProps } from "../session-tabs.tsx";
import { StatusBanner } from "../status-banner.tsx";
import { CurrentStep } from "./current-step.tsx";
import { Limits } from "./limits.tsx";

/** What happens now: the running step or what the session waits for, its question, pending guidance, and limits. */
export function NowPanel({ session, timeline, onIteration }: TabProps) {
  const { steps, running } = useSignal(timeline.state);
  const last = steps.findLast(({ status }) => status === "ok");
  return (
    <div className="flex flex-col gap-4 p-4" data-testid="now">
      <CurrentStep session={session} news={running} />
      <div className="flex flex-col gap-2 empty:hidden">
        <StatusBanner session={session} />
      </div>
      {session.question !== null && (
        <div className="panel border-warn p-3">
          <QuestionView session={session} />
        </div>
      )}
      <PendingGuidance guidance={session.pending_guidance} isRunning={session.step_started_at !== null} />
      <Limits session={session} />
      {last && <LastStep step={last} onIteration={onIteration} />}
      {!last && Object.keys(session.params).length > 0 && (
        <Section title="Parameters">
          <Json value={session.params} label="Parameters" />
        </Section>
      )}
    </div>
  );
}

/** Guidance that no committed step has consumed. How much of it the running step has is known when that ends. */
function PendingGuidance({ guidance, isRunning }: { guidance: readonly unknown[]; isRunning: boolean }) {
  if (guidance.length === 0) return null;
  return (
    <Section title={isRunning ? "Guidance for this step or the next" : "Guidance for the next step"}>
      <ul className="flex flex-col gap-1.5">
        {guidance.map((said, index) => (
          // Guidance has no id and is only removed from the front.
          <li
            key={guidance.length - index}
            className="border-l-2 border-accent pl-2.5 text-accent"
            data-testid="pending"
          >
            <span className="line-clamp-3 wrap-anywhere">{spoken(said)}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function LastStep({ step, onIteration }: { step: SlimStep; onIteration: (iteration: number) => void }) {
  const text = step.text ?? (step.data === null ? null : JSON.stringify(step.data));
  if (text === null) return null;
  return (
    <Section title="Last text" aside={<RawSwitch />}>
      <div className="panel px-3 py-2">
        <div className="max-h-72 overflow-y-auto" tabIndex={0} role="group" aria-label="Last text">
          <Markdown text={text} />
        </div>
        <button
          type="button"
          className="mt-2 text-[12px] text-accent hover:underline"
          onClick={() => onIteration(step.iteration)}
        >
          Open step {step.iteration}
        </button>
      </div>
    </Section>
  );
}
