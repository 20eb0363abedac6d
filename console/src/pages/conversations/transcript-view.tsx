import { useEffect, useRef } from "react";
import { VList, type VListHandle } from "virtua";
import { useQueryState } from "../../app/router.ts";
import { useSignal } from "../../data/signal.ts";
import type { Transcript } from "../../data/transcript.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { Bubble, SpeakingBubble } from "./bubble.tsx";
import type { Receipts } from "./use-receipts.ts";

type TranscriptViewProps = { transcript: Transcript; receipts: Receipts; hasAgents: boolean };

const NEAR_END = 80;

export function TranscriptView({ transcript, receipts, hasAgents }: TranscriptViewProps) {
  const { messages, speaking, isLoading, error } = useSignal(transcript.state);
  const [search] = useQueryState();
  const wanted = search.get("message");
  const list = useRef<VListHandle>(null);
  const isAtEnd = useRef(wanted === null);
  const rows = messages.length + speaking.size;
  const said = [...speaking.values()].reduce((sum, { text }) => sum + text.length, 0);

  useEffect(() => {
    if (isAtEnd.current && rows > 0) list.current?.scrollToIndex(rows - 1, { align: "end" });
  }, [rows, said]);
  useEffect(() => {
    const index = transcript.state.value.messages.findIndex(({ message_id }) => message_id === wanted);
    if (index >= 0) list.current?.scrollToIndex(index, { align: "center" });
  }, [wanted, transcript, isLoading]);

  if (error) return <Failure error={error} />;
  if (rows === 0 && !isLoading)
    return (
      <div className="flex-1">
        <Empty title="Nothing was said yet">
          {hasAgents ? "Write the first message below." : "Add an agent beside, then write the first message below."}
        </Empty>
      </div>
    );
  return (
    <VList
      ref={list}
      className="flex-1 py-2"
      role="log"
      aria-label="Messages"
      tabIndex={0}
      onScroll={(offset) => {
        const handle = list.current;
        if (handle) isAtEnd.current = handle.scrollSize - offset - handle.viewportSize < NEAR_END;
      }}
    >
      {messages.map((message) => (
        <Bubble
          key={message.message_id}
          message={message}
          receipts={receipts}
          isWanted={message.message_id === wanted}
        />
      ))}
      {[...speaking.values()].map((one) => (
        <SpeakingBubble key={`speaking ${one.session_id}`} speaking={one} />
      ))}
    </VList>
  );
}
