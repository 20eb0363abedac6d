import { useState } from "react";
import { useActions } from "../../data/actions.ts";
import type { Action } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/empty.tsx";
import { plural, spoken } from "../../ui/format.ts";
import { carriesWords, Receipt } from "../../ui/receipt.tsx";
import { Time } from "../../ui/time.tsx";
import { senderOf } from "./sender.ts";

const NAMES: Readonly<Record<Action["action_type"], string>> = {
  agent_create: "Start",
  agent_pause: "Pause",
  agent_resume: "Resume",
  agent_interrupt: "Guidance",
  agent_input: "Message",
  agent_destroy: "Destroy",
  agent_fork: "Fork",
  agent_answer: "Answer",
  agent_join: "Join a conversation",
  agent_drop: "Take back",
};

type ReceiptsProps = { session_id: string; onIteration: (iteration: number) => void };

/** Receipts shown at first, and with each "Show more". */
const PAGE = 100;

/** The receipts of all requests to the session. */
export function Receipts({ session_id, onIteration }: ReceiptsProps) {
  const { actions, isLoading, isComplete } = useActions(session_id);
  const [shown, setShown] = useState(PAGE);
  if (actions.length === 0)
    return isLoading ? (
      <p className="p-4 text-muted">Loading…</p>
    ) : (
      <Empty title="No requests yet">What you send to the session is listed here with its receipt.</Empty>
    );
  return (
    <>
      <ol className="flex flex-col" aria-label="Receipts">
        {actions.slice(0, shown).map((action) => (
          <Item key={action.action_id} action={action} onIteration={onIteration} />
        ))}
      </ol>
      <p className="p-3 text-center text-muted">
        {shown < actions.length ? (
          <Button onClick={() => setShown(shown + PAGE)}>
            Show more of {plural(actions.length, "request", "requests", isComplete)}
          </Button>
        ) : (
          !isComplete && "Older requests are not listed."
        )}
      </p>
    </>
  );
}

function Item({ action, onIteration }: Pick<ReceiptsProps, "onIteration"> & { action: Action }) {
  return (
    <li data-testid="receipt" className="border-b border-line px-4 py-2.5">
      <div className="flex items-baseline gap-2">
        <span className="font-medium">{NAMES[action.action_type]}</span>
        <span className="truncate text-muted">{senderOf(guidanceIn(action), action)}</span>
        <span className="ml-auto shrink-0 text-[12px] text-muted">
          <Time at={action.created_at} />
        </span>
      </div>
      {carriesWords(action) && <p className="my-1 line-clamp-4 wrap-anywhere">{spoken(guidanceIn(action))}</p>}
      <Receipt action={action} onIteration={onIteration} />
    </li>
  );
}

const guidanceIn = ({ payload }: Action): unknown => payload["guidance"] ?? payload;
