import { type Action, useActions } from "../../data/queries.ts";
import { Empty } from "../../ui/empty.tsx";
import { spoken } from "../../ui/format.ts";
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

/** What became of every word and request that people sent. */
export function Receipts({ session_id, onIteration }: ReceiptsProps) {
  const { data: actions } = useActions(session_id);
  if (actions?.length === 0)
    return <Empty title="Nothing was asked of it yet">What you send it shows here, with its receipt.</Empty>;
  return (
    <ol className="flex flex-col" aria-label="Receipts">
      {actions?.map((action) => (
        <li key={action.action_id} data-testid="receipt" className="border-b border-line px-4 py-2.5">
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
      ))}
    </ol>
  );
}

const guidanceIn = ({ payload }: Action): unknown => payload["guidance"] ?? payload;
