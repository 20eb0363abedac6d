import { useState } from "react";
import type { SearchHit } from "../../../src/domain/search.ts";
import { conversationHref, sessionHref, useQueryState } from "../app/router.ts";
import { useSearchHits } from "../data/queries.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Failure } from "../ui/empty.tsx";
import { plural } from "../ui/format.ts";
import { Link } from "../ui/link.tsx";

/** Words across all history, with a jump to the step or message that has them. */
export default function SearchPage() {
  const [search, change] = useQueryState();
  const q = search.get("q") ?? "";
  const [text, setText] = useState(q);
  const [known, setKnown] = useState(q);
  if (q !== known) {
    setKnown(q);
    setText(q);
  }
  const { data: hits, error, isFetching } = useSearchHits(q);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <header className="border-b border-line bg-surface px-4 py-3">
        <h1 className="sr-only">Search</h1>
        <form
          role="search"
          className="mx-auto flex max-w-3xl gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            change({ q: text }, { push: true });
          }}
        >
          <input
            type="search"
            data-search
            aria-label="Search all history"
            placeholder="Words that a step or a message has…"
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
          <Empty title="Search everything that was ever said">
            Case and accents do not matter; every word must be there.
          </Empty>
        )}
        {hits?.length === 0 && !isFetching && <Empty title="Nothing has these words">Try fewer of them.</Empty>}
        {hits && hits.length > 0 && <p className="mb-2 text-muted">{plural(hits.length, "hit")}</p>}
        <ol className="flex flex-col gap-2">
          {hits?.map((hit) => (
            <Hit key={`${hit.session_id} ${hit.iteration} ${hit.message_id}`} hit={hit} q={q} />
          ))}
        </ol>
      </div>
    </div>
  );
}

function Hit({ hit, q }: { hit: SearchHit; q: string }) {
  const { kind, session_id = "", iteration, conversation_id = "", message_id } = hit;
  const to =
    kind === "step"
      ? sessionHref(session_id, { step: iteration })
      : conversationHref(conversation_id, { message: message_id });
  return (
    <li data-testid="hit">
      <Link href={to} className="panel block px-3.5 py-2.5 hover:bg-sunken">
        <span className="mb-0.5 block truncate text-[12px] text-muted">
          {kind === "step" ? `Step ${iteration} of ${session_id}` : `Message in ${conversation_id}`}
        </span>
        <span className="line-clamp-3 wrap-anywhere">
          <Marked text={excerpt(hit.text, q)} q={q} />
        </span>
      </Link>
    </li>
  );
}

const wordsOf = (q: string): string[] => q.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** The part of a long text around the first word that was asked for. */
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
  const wanted = wordsOf(q);
  if (wanted.length === 0) return text;
  const parts = text.split(new RegExp(`(${wanted.join("|")})`, "giu"));
  let at = 0;
  return parts.map((part) => {
    const key = at;
    at += part.length + 1;
    return wanted.includes(part.toLowerCase()) ? (
      <mark key={key} className="rounded-sm bg-[color-mix(in_srgb,var(--warn)_28%,transparent)] text-inherit">
        {part}
      </mark>
    ) : (
      part
    );
  });
}
