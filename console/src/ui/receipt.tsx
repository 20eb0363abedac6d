import type { ReactNode } from "react";
import type { Action } from "../data/queries.ts";

type ReceiptProps = { action: Action; onIteration?: (iteration: number) => void };

/** Accepted → delivered → consumed at a step, or bounced and why; for requests without guidance, done or rejected. */
export function Receipt({ action, onIteration }: ReceiptProps) {
  return (
    <div className="flex flex-wrap items-center gap-x-1.5 text-[12px]" data-receipt={action.receipt}>
      <Stage isDone>accepted</Stage>
      {arrow}
      {endOf(action, onIteration)}
    </div>
  );
}

const arrow = (
  <span aria-hidden className="text-muted">
    →
  </span>
);

const GUIDANCE: ReadonlySet<Action["action_type"]> = new Set(["agent_interrupt", "agent_input", "agent_answer"]);

/** Whether it brings guidance that a step consumes. */
export const carriesWords = ({ action_type }: Action): boolean => GUIDANCE.has(action_type);

function endOf(action: Action, onIteration: ReceiptProps["onIteration"]): ReactNode {
  const { receipt, outcome, error, consumed_iteration } = action;
  if (receipt === "bounced") return <span className="text-bad">bounced: {error}</span>;
  if (outcome === "rejected" || outcome === "failed")
    return (
      <span className="text-bad">
        {outcome}: {error}
      </span>
    );
  if (receipt === "accepted") return <Stage>{action.error ?? "in the queue"}</Stage>;
  if (!carriesWords(action)) return <Stage isDone>done</Stage>;
  return (
    <>
      <Stage isDone>delivered</Stage>
      {arrow}
      {receipt !== "consumed" || consumed_iteration === null ? (
        <Stage>waiting for the next step</Stage>
      ) : onIteration ? (
        <button
          type="button"
          className="font-medium text-good underline"
          onClick={() => onIteration(consumed_iteration)}
        >
          consumed at step {consumed_iteration}
        </button>
      ) : (
        <Stage isDone>consumed at step {consumed_iteration}</Stage>
      )}
    </>
  );
}

const Stage = ({ isDone = false, children }: { isDone?: boolean; children: ReactNode }) => (
  <span className={isDone ? "text-good" : "text-muted"}>{children}</span>
);
