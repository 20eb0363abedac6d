import { type ReactNode, useState } from "react";
import type { Step } from "../../../../src/domain/step.ts";
import { useActionsOfStep } from "../../data/actions.ts";
import { type Session, useStepPair } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { count, dollars, milliseconds, spoken } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Markdown, RawSwitch } from "../../ui/markdown.tsx";
import { Section } from "../../ui/section.tsx";
import { Time } from "../../ui/time.tsx";
import { ForkDialog } from "../fork/fork-dialog.tsx";
import { RerunButton } from "../rerun/rerun-button.tsx";
import { Calls } from "./calls/calls.tsx";
import { senderOf } from "./sender.ts";
import { StateChanges } from "./state-changes.tsx";

type StepDetailProps = { session: Session; iteration: number; onIteration: (iteration: number) => void };

export function StepDetail({ session, iteration, onIteration }: StepDetailProps) {
  const { data: rows, error, refetch } = useStepPair(session.session_id, iteration);
  const [isForking, setForking] = useState(false);
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!rows) return <p className="p-4 text-muted">Loading…</p>;
  const own = rows.filter((row) => row.iteration === iteration);
  const step = own.find(({ status }) => status === "ok") ?? own.at(-1);
  const before = rows.find((row) => row.iteration === iteration - 1 && row.status === "ok");
  if (!step) return <Empty title={`Step ${iteration} does not exist yet`} />;
  const failures = own.filter((row) => row.status === "error" && row !== step);
  return (
    <article className="flex flex-col gap-4 p-4" aria-label={`Step ${iteration}`} data-testid="step-detail">
      <div className="flex flex-wrap items-center gap-1.5">
        <h2 className="mr-auto text-[15px] font-semibold">Step {iteration}</h2>
        <Button aria-label="Previous step" disabled={iteration === 0} onClick={() => onIteration(iteration - 1)}>
          ↑
        </Button>
        <Button
          aria-label="Next step"
          disabled={iteration >= session.iteration}
          onClick={() => onIteration(iteration + 1)}
        >
          ↓
        </Button>
        <RerunButton session={session} step={step} before={before} />
        <Button disabled={step.status === "error"} onClick={() => setForking(true)}>
          <Icon name="fork" className="size-3.5" />
          Fork from here…
        </Button>
      </div>
      <Figures step={step} />
      {step.error !== null && <ErrorBox error={step.error} />}
      {failures.map((row) => (
        <ErrorBox key={row.id} error={`An earlier attempt failed: ${row.error}`} />
      ))}
      <Guidance step={step} />
      {step.text !== null && (
        <Section title="Text" aside={<RawSwitch />}>
          <div className="rounded-md border border-line bg-surface px-3 py-2">
            <Markdown text={step.text} />
          </div>
        </Section>
      )}
      <Calls calls={step.calls} />
      {step.status === "ok" && (
        <Section title="State changes">
          <StateChanges before={before?.state ?? {}} after={step.state} />
        </Section>
      )}
      {step.data !== null && (
        <Section title="Data">
          <JsonTree value={step.data} label="Data" />
        </Section>
      )}
      {step.notes !== null && (
        <Section title="Notes">
          <p className="whitespace-pre-wrap wrap-anywhere">{step.notes}</p>
        </Section>
      )}
      <Section title="State after this step">
        <JsonTree value={step.state} label="State after this step" />
      </Section>
      {isForking && <ForkDialog session={session} iteration={iteration} onClose={() => setForking(false)} />}
    </article>
  );
}

function Figures({ step }: { step: Step }) {
  const figures: [string, ReactNode][] = [
    ["Step → next", `${step.step_token} → ${step.next_step_token}`],
    ["Latency", milliseconds(step.latency_ms)],
    ["Model tokens", count(step.tokens_used)],
    ...(step.cost_usd > 0 ? [["Cost", dollars(step.cost_usd)] satisfies [string, ReactNode]] : []),
    ...(step.attempts > 1 ? [["Attempts", count(step.attempts)] satisfies [string, ReactNode]] : []),
    ["Committed", <Time key="at" at={step.created_at} withDate />],
  ];
  return (
    <dl className="panel flex flex-wrap gap-x-8 gap-y-2 px-3 py-2">
      {figures.map(([name, value]) => (
        <div key={name} className="min-w-0">
          <dt className="text-[11px] text-muted">{name}</dt>
          <dd className="tabular-nums wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The guidance that the step consumed, and who sent it. */
function Guidance({ step }: { step: Step }) {
  const { data: actions } = useActionsOfStep(step.action_ids);
  if (step.guidance.length === 0) return null;
  return (
    <Section title="Guidance">
      <ul className="flex flex-col gap-1.5">
        {step.guidance.map((said, index) => (
          <li key={step.action_ids[index] ?? index} className="border-l-2 border-accent pl-2.5" data-testid="consumed">
            <span className="whitespace-pre-wrap wrap-anywhere">{spoken(said)}</span>
            <span className="block text-[12px] text-muted">
              by {senderOf(said, actions?.get(step.action_ids[index] ?? ""))}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

const ErrorBox = ({ error }: { error: string }) => (
  <p className="rounded-md bg-bad-soft px-3 py-2 text-bad wrap-anywhere">{error}</p>
);
