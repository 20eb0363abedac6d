import { useEffect, useRef } from "react";
import { VList, type VListHandle } from "virtua";
import { useQueryState } from "../../app/router.ts";
import { useSignal } from "../../data/signal.ts";
import type { Transcript } from "../../data/transcript.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { useFollowedEnd } from "../../ui/use-followed-end.ts";
import { Bubble, SpeakingBubble } from "./bubble.tsx";
import type { Receipts } from "./use-receipts.ts";

type TranscriptViewProps = { transcript: Transcript; receipts: Receipts; hasAgents: boolean };

export function TranscriptView({ transcript, receipts, hasAgents }: TranscriptViewProps) {
  const { messages, speaking, isLoading, error } = useSignal(transcript.state);
  const [search] = useQueryState();
  const linkedId = search.get("message");
  const list = useRef<VListHandle>(null);
  const { frame, scrolledTo } = useFollowedEnd(linkedId === null);
  const rows = messages.length + speaking.size;

  useEffect(() => {
    const index = transcript.state.value.messages.findIndex(({ message_id }) => message_id === linkedId);
    if (index >= 0) list.current?.scrollToIndex(index, { align: "center" });
  }, [linkedId, transcript, isLoading]);

  if (error) return <Failure error={error} />;
  if (rows === 0 && !isLoading)
    return (
      <div className="flex-1">
        <Empty title="No messages yet">
          {hasAgents ? "Write the first message below." : "Add an agent, then write the first message below."}
        </Empty>
      </div>
    );
  return (
    <div ref={frame} className="flex min-h-0 flex-1 flex-col">
      <VList
        ref={list}
        className="flex-1 py-2"
        role="log"
        aria-label="Messages"
        tabIndex={0}
        onScroll={(offset) => {
          const handle = list.current;
          if (handle) scrolledTo(offset, handle.scrollSize - offset - handle.viewportSize);
        }}
      >
        {messages.map((message) => (
          <Bubble
            key={message.message_id}
            message={message}
            receipts={receipts}
            isWanted={message.message_id === linkedId}
          />
        ))}
        {[...speaking.values()].map((one) => (
          <SpeakingBubble key={`speaking ${one.session_id}`} speaking={one} />
        ))}
      </VList>
    </div>
  );
}
