import { useState } from "react";
import type { SearchHit } from "../../../src/domain/search.ts";
import { conversationHref, sessionHref, useQueryState } from "../app/router.ts";
import { MOST_HITS, useAgentNames, useConversations, useSearchHits } from "../data/queries.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Failure } from "../ui/empty.tsx";
import { count, plural } from "../ui/format.ts";
import { Link } from "../ui/link.tsx";
import { SessionName } from "../ui/session-name.tsx";

const PAGE = 50;

function ArchivesSkipped({ sessions }: { sessions: number }) {
  if (sessions === 0) return null;
  return (
    <p className="mb-2 text-muted" data-testid="archives-skipped">
      {plural(sessions, "archived session was", "archived sessions were")} not searched.
    </p>
  );
}

/** Full-text search over all history, with links to steps and messages. */
export default function SearchPage() {
  const [search, change] = useQueryState();
  const q = search.get("q") ?? "";
  const [text, setText] = useState(q);
  const [lastQuery, setLastQuery] = useState(q);
  if (q !== lastQuery) {
    setLastQuery(q);
    setText(q);
  }
  const { data, error, isFetching } = useSearchHits(q);
  const hits = data?.hits;
  const lastPage = Math.max(1, Math.ceil((hits?.length ?? 0) / PAGE));
  const page = Math.min(lastPage, Math.max(1, Math.floor(Number(search.get("page") ?? 1)) || 1));
  const first = (page - 1) * PAGE;
  return (
    <div data-scroll className="min-h-0 flex-1 overflow-y-auto">
      <header className="border-b border-line bg-surface px-4 py-3">
        <h1 className="sr-only">Search</h1>
        <form
          role="search"
          className="mx-auto flex max-w-3xl gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            change({ q: text, page: null }, { push: true });
          }}
        >
          <input
            type="search"
            data-search
            aria-label="Search all history"
            placeholder="Search steps and messages…"
            className="field h-9 text-[14px]"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <Button type="submit" look="primary" className="min-h-9 px-4">
            Search
          </Button>
        </form>
      </header>
      <div className="mx-auto max-w-3xl p-4">
        {error && <Failure error={error} />}
        {q === "" && (
          <Empty title="Search all history">
            Everything that agents and people ever said. Case and accents are ignored; all words must match.
          </Empty>
        )}
        {hits?.length === 0 && !isFetching && <Empty title="No matches">Try fewer words.</Empty>}
        {hits && hits.length > 0 && (
          <p className="mb-2 text-muted" data-testid="hit-count" role="status">
            {plural(hits.length, "hit", "hits", hits.length < MOST_HITS)}
            {hits.length > PAGE && `, ${count(first + 1)} to ${count(Math.min(first + PAGE, hits.length))} shown`}
          </p>
        )}
        <ArchivesSkipped sessions={data?.archives_skipped ?? 0} />
        <Hits hits={hits?.slice(first, first + PAGE) ?? []} q={q} />
        {hits && hits.length > PAGE && (
          <div className="mt-3 flex items-center justify-center gap-3">
            <Button
              disabled={page === 1}
              onClick={() => change({ page: page === 2 ? null : page - 1 }, { push: true })}
            >
              Previous
            </Button>
            <span>
              Page {count(page)} of {count(lastPage)}
            </span>
            <Button disabled={page === lastPage} onClick={() => change({ page: page + 1 }, { push: true })}>
              Next
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}

function Hits({ hits, q }: { hits: SearchHit[]; q: string }) {
  const agents = useAgentNames(hits.flatMap(({ session_id }) => session_id ?? []));
  return (
    <ol className="flex flex-col gap-2">
      {hits.map((hit) => (
        <Hit
          key={`${hit.session_id} ${hit.iteration} ${hit.message_id}`}
          hit={hit}
          agent_id={agents.get(hit.session_id ?? "")}
          q={q}
        />
      ))}
    </ol>
  );
}

function Hit({ hit, agent_id, q }: { hit: SearchHit; agent_id: string | undefined; q: string }) {
  const { kind, session_id = "", iteration, conversation_id = "", message_id } = hit;
  const to =
    kind === "step"
      ? sessionHref(session_id, { step: iteration })
      : conversationHref(conversation_id, { message: message_id });
  return (
    <li data-testid="hit">
      <Link href={to} className="panel block px-3.5 py-2.5 hover:bg-sunken">
        <span className="mb-0.5 block truncate text-[12px] text-muted">
          {kind === "step" ? (
            <>
              Step {iteration} of <SessionName agent_id={agent_id} session_id={session_id} />
            </>
          ) : (
            <>
              Message in <ConversationName conversation_id={conversation_id} />
            </>
          )}
        </span>
        <span className="line-clamp-3 wrap-anywhere">
          <Marked text={excerpt(hit.text, q)} q={q} />
        </span>
      </Link>
    </li>
  );
}

function ConversationName({ conversation_id }: { conversation_id: string }) {
  const conversation = useConversations().data?.find((one) => one.conversation_id === conversation_id);
  return conversation?.title || conversation_id;
}

const wordsOf = (q: string): string[] => q.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** The part of a long text around the first match. */
function excerpt(text: string, q: string): string {
  const at = Math.max(
    0,
    ...wordsOf(q)
      .slice(0, 1)
      .map((word) => text.toLowerCase().indexOf(word)),
  );
  return at > 200 ? `…${text.slice(at - 100, at + 300)}` : text.slice(0, 400);
}

function Marked({ text, q }: { text: string; q: string }) {
  const words = wordsOf(q);
  if (words.length === 0) return text;
  const parts = text.split(new RegExp(`(${words.join("|")})`, "giu"));
  let at = 0;
  return parts.map((part) => {
    const key = at;
    at += part.length + 1;
    return words.includes(part.toLowerCase()) ? (
      <mark key={key} className="rounded-sm bg-[color-mix(in_srgb,var(--warn)_28%,transparent)] text-inherit">
        {part}
      </mark>
    ) : (
      part
    );
  });
}
