import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError, get, pathOf } from "../../data/api.ts";
import { type Conversation, type Summaries, useParticipants } from "../../data/queries.ts";
import { Transcript } from "../../data/transcript.ts";
import { useReconnected } from "../../data/use-reconnected.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Link } from "../../ui/link.tsx";
import { RawSwitch } from "../../ui/markdown.tsx";
import { useTitle } from "../../ui/use-title.ts";
import { Composer } from "./composer.tsx";
import { Participants } from "./participants.tsx";
import { TranscriptView } from "./transcript-view.tsx";
import { useReceipts } from "./use-receipts.ts";

export function ConversationView({ conversation_id }: { conversation_id: string }) {
  const { data: conversation, error } = useQuery({
    queryKey: ["conversation", conversation_id],
    queryFn: ({ signal }) => get<Conversation>(pathOf("conversations", conversation_id), {}, signal),
  });
  useTitle(conversation?.title ?? "Conversation");
  const participants = (useParticipants(conversation_id).data ?? []).filter(({ left_at }) => left_at === null);
  const session_ids = participants.flatMap(({ session_id }) => session_id ?? []);
  const sessions = useSessionStates(session_ids);
  const receipts = useReceipts(session_ids);
  const transcript = useTranscript(conversation_id);
  const [isShowingPeople, setShowingPeople] = useState(false);
  if (error)
    return error instanceof ApiError && error.status === 404 ? (
      <div className="flex-1">
        <Empty title="Conversation not found">
          <Link href="/conversations" className="text-accent underline">
            Show all conversations
          </Link>
        </Empty>
      </div>
    ) : (
      <Failure error={error} />
    );
  return (
    <>
      <section
        aria-label="Transcript"
        className={`min-h-0 min-w-0 flex-1 flex-col lg:flex ${isShowingPeople ? "hidden" : "flex"}`}
      >
        <header className="flex h-[49px] shrink-0 items-center gap-2 border-b border-line bg-surface px-4">
          <Link
            href="/conversations"
            aria-label="All conversations"
            className="rounded p-1 text-muted hover:bg-sunken md:hidden"
          >
            <Icon name="left" />
          </Link>
          <h1 className="min-w-0 flex-1 truncate text-[15px] font-semibold">
            {conversation?.title ?? conversation_id}
          </h1>
          <RawSwitch />
          <button type="button" className="text-accent lg:hidden" onClick={() => setShowingPeople(true)}>
            Participants
          </button>
        </header>
        {transcript && (
          <TranscriptView transcript={transcript} receipts={receipts} hasAgents={session_ids.length > 0} />
        )}
        <Composer
          conversation_id={conversation_id}
          sessions={sessions}
          isArchived={conversation?.status === "archived"}
        />
      </section>
      <Participants
        conversation_id={conversation_id}
        participants={participants}
        sessions={sessions}
        isShown={isShowingPeople}
        onHide={() => setShowingPeople(false)}
      />
    </>
  );
}

function useTranscript(conversation_id: string): Transcript | null {
  const [transcript, setTranscript] = useState<Transcript | null>(null);
  const [attempt, setAttempt] = useState(0);
  useReconnected(() => {
    if (transcript?.state.value.error) setAttempt(attempt + 1);
  });
  useEffect(() => {
    const next = new Transcript(conversation_id);
    setTranscript(next);
    void next.open();
    return () => next.close();
  }, [conversation_id, attempt]);
  return transcript;
}

/** The status of the conversation's sessions, kept live with all summaries. */
function useSessionStates(session_ids: string[]) {
  const { data } = useQuery({
    queryKey: ["summaries", { session_id: session_ids }, 0, 500],
    enabled: session_ids.length > 0,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => get<Summaries>("/api/session-summaries", { session_id: session_ids, limit: 500 }, signal),
  });
  return session_ids.length > 0 ? (data?.sessions ?? []) : [];
}
