import { useMemo } from "react";
import type { Session } from "../../data/queries.ts";
import { type StepGraph, stepGraph } from "../../data/step-graph.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { count, plural } from "../../ui/format.ts";
import { Section } from "../../ui/section.tsx";
import { SessionTree } from "./session-tree.tsx";
import { StepGraphView } from "./step-graph-view.tsx";
import { useSpans } from "./use-spans.ts";

type GraphTabProps = { session: Session; onIteration: (iteration: number) => void };

/** The graph of a session's steps, and the tree of its ancestors, children and forks. */
export default function GraphTab({ session, onIteration }: GraphTabProps) {
  return (
    <div className="flex flex-col gap-6 p-4">
      <Steps session={session} onIteration={onIteration} />
      <Section title="Children and forks">
        <SessionTree session_id={session.session_id} />
      </Section>
    </div>
  );
}

const ENDED = ["done", "stopped", "error"];

function Steps({ session, onIteration }: GraphTabProps) {
  const { status, next_step_token } = session;
  const { spans, isLoading, error } = useSpans(session);
  const isOver = ENDED.includes(status);
  const graph = useMemo(() => stepGraph(spans, { next_step_token, isOver }), [spans, next_step_token, isOver]);
  const [first] = spans;
  if (error) return <Failure error={error} />;
  if (!first && isLoading) return <p className="text-muted">Loading…</p>;
  if (!first) return <Empty title="No steps yet">The graph starts with the first step.</Empty>;
  return (
    <Section
      title="Kinds of steps"
      aside={
        first.iteration > 0 && <span className="text-[12px] text-muted">from step {count(first.iteration)} on</span>
      }
    >
      <StepGraphView graph={graph} isRunning={session.step_started_at !== null} onIteration={onIteration} />
      <Ways graph={graph} />
    </Section>
  );
}

/** The same as a table. */
function Ways({ graph: { edges } }: { graph: StepGraph }) {
  const taken = edges.filter((edge) => edge.count > 0).sort((one, other) => other.count - one.count);
  if (taken.length === 0) return null;
  return (
    <details className="mt-2">
      <summary className="text-[12px] text-muted">{plural(taken.length, "transition")}, as a table</summary>
      <table className="mt-2 w-full text-left text-[12px]">
        <thead className="text-muted">
          <tr>
            <th className="py-1 font-medium">From</th>
            <th className="py-1 font-medium">To</th>
            <th className="py-1 text-right font-medium">Times</th>
          </tr>
        </thead>
        <tbody className="font-mono">
          {taken.map(({ from, to, count: times }) => (
            <tr key={`${from} ${to}`} className="border-t border-line">
              <td className="py-1 pr-2 wrap-anywhere">{from}</td>
              <td className="py-1 pr-2 wrap-anywhere">{to}</td>
              <td className="py-1 text-right tabular-nums">{count(times)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
