import { sessionHref } from "../../app/router.ts";
import { myName } from "../../data/identity.ts";
import type { Message } from "../../data/queries.ts";
import { useSignal } from "../../data/signal.ts";
import type { Speaking } from "../../data/transcript.ts";
import { Link } from "../../ui/link.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Receipt } from "../../ui/receipt.tsx";
import { LiveDot } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import type { Receipts } from "./use-receipts.ts";

type BubbleProps = { message: Message; receipts: Receipts; isWanted: boolean };

export function Bubble({ message, receipts, isWanted }: BubbleProps) {
  const isMine = message.sender_type === "user" && message.user_id === useSignal(myName);
  const isAgent = message.sender_type === "agent";
  const look = isMine ? "bg-accent-soft" : isAgent ? "bg-surface border border-line" : "bg-sunken border border-line";
  return (
    <div
      className={`flex px-4 py-1.5 ${isMine ? "justify-end" : ""}`}
      data-testid="message"
      data-sender={message.sender_type}
    >
      <div
        className={`max-w-[85%] min-w-0 rounded-xl px-3.5 py-2 lg:max-w-[70%] ${look} ${isWanted ? "outline-2 outline-accent" : ""}`}
      >
        <div className="mb-0.5 flex items-baseline gap-3 text-[12px] text-muted">
          <span className="font-semibold text-ink">{message.agent_id ?? message.user_id ?? "system"}</span>
          {isAgent && message.session_id !== null && message.iteration !== null && (
            <Link href={sessionHref(message.session_id, { step: message.iteration })} className="hover:underline">
              step {message.iteration}
            </Link>
          )}
          <span className="ml-auto">
            <Time at={message.created_at} />
          </span>
        </div>
        <Markdown text={message.text ?? JSON.stringify(message.data)} />
        {message.action_ids.map((action_id) => {
          const action = receipts.get(action_id);
          return action ? (
            <div key={action_id} className="mt-1.5 flex flex-wrap gap-x-2 text-[12px]" data-testid="receipt">
              <span className="text-muted">{action.agent_id}:</span>
              <Receipt action={action} />
            </div>
          ) : null;
        })}
      </div>
    </div>
  );
}

export const SpeakingBubble = ({ speaking }: { speaking: Speaking }) => (
  <div className="flex px-4 py-1.5" data-testid="speaking">
    <div className="max-w-[85%] min-w-0 rounded-xl border border-line bg-surface px-3.5 py-2 lg:max-w-[70%]">
      <p className="mb-0.5 text-[12px] text-running">
        <LiveDot /> writing…
      </p>
      <Markdown text={speaking.text} folds={false} />
    </div>
  </div>
);
