import type { ReactNode } from "react";
import type { Rerun } from "../../../../src/domain/rerun.ts";
import type { Step } from "../../../../src/domain/step.ts";
import { count, milliseconds } from "../../ui/format.ts";
import { Json } from "../../ui/json.tsx";
import { MarkedWords } from "../../ui/marked-words.tsx";
import { Section } from "../../ui/section.tsx";
import { StateChanges } from "../session/state-changes.tsx";

/** The rerun's result beside the recorded step. */
export function RerunResult({ step, rerun }: { step: Step; rerun: Rerun }) {
  const { frame, error, differences } = rerun;
  return (
    <section
      aria-label="Result"
      data-testid="rerun-result"
      className="mt-4 flex flex-col gap-3 border-t border-line pt-4"
    >
      <p
        role="status"
        className={`rounded-md px-3 py-2 ${error !== null ? "bg-bad-soft text-bad" : rerun.differs ? "bg-warn-soft" : "bg-good-soft text-good"} wrap-anywhere`}
      >
        {error !== null
          ? `Failed: ${error}`
          : rerun.differs
            ? step.error !== null
              ? `Succeeded now. The recorded step failed: ${step.error}`
              : `Different: ${differences.join(", ").replaceAll("_", " ")}.`
            : "Same result as recorded."}
      </p>
      <dl className="grid grid-cols-[auto_1fr_1fr] gap-x-4 gap-y-1 tabular-nums">
        <Figure name="" then="then" now="now" />
        <Figure name="Latency" then={milliseconds(step.latency_ms)} now={milliseconds(rerun.latency_ms)} />
        <Figure name="Model tokens" then={count(step.tokens_used)} now={count(rerun.tokens_used)} />
        <Figure name="Code" then={versionOf(step.moniker_version)} now={versionOf(rerun.moniker_version)} />
      </dl>
      {frame && <Texts then={step.text ?? ""} now={frame.text ?? ""} />}
      {frame && differences.includes("state") && (
        <Section title="State after the step, then and now">
          <StateChanges before={step.state} after={frame.state} />
        </Section>
      )}
      {frame &&
        differences
          .filter((field) => field !== "text" && field !== "state" && field !== "error")
          .map((field) => (
            <Section key={field} title={field.replace("_", " ")}>
              <Beside
                then={<Json value={recordedAt(step, field)} label={`${field} then`} />}
                now={<Json value={(frame as Record<string, unknown>)[field] ?? null} label={`${field} now`} />}
              />
            </Section>
          ))}
    </section>
  );
}

const recordedAt = ({ next_step_token: next_step, data, notes, directives }: Step, field: string): unknown =>
  ({ next_step, data, notes, ...directives })[field] ?? null;

const versionOf = (version: string | null): ReactNode => (
  <span className="font-mono text-[12px]">{version ?? "unknown"}</span>
);

const Figure = ({ name, then, now }: { name: string; then: ReactNode; now: ReactNode }) => (
  <div className="contents">
    <dt className="text-muted">{name}</dt>
    <dd className={name === "" ? "text-muted" : ""}>{then}</dd>
    <dd className={name === "" ? "text-muted" : ""}>{now}</dd>
  </div>
);

function Texts({ then, now }: { then: string; now: string }) {
  if (then === "" && now === "") return null;
  if (then === now)
    return (
      <Section title="Text, the same then and now">
        <p className="max-h-60 overflow-y-auto whitespace-pre-wrap wrap-anywhere">{now}</p>
      </Section>
    );
  return (
    <Section title="Text, then and now">
      <Beside
        then={<MarkedWords own={then} other={now} look="bg-bad-soft text-bad" />}
        now={<MarkedWords own={now} other={then} look="bg-good-soft text-good" />}
      />
    </Section>
  );
}

const Beside = ({ then, now }: { then: ReactNode; now: ReactNode }) => (
  <div className="grid gap-2 sm:grid-cols-2">
    {[then, now].map((side, index) => (
      <div
        key={index === 0 ? "then" : "now"}
        tabIndex={0}
        role="group"
        aria-label={index === 0 ? "Then" : "Now"}
        className="max-h-80 min-w-0 overflow-y-auto rounded-md border border-line bg-surface px-3 py-2 whitespace-pre-wrap wrap-anywhere"
      >
        {side}
      </div>
    ))}
  </div>
);
