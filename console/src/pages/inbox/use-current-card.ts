import { useEffect, useState } from "react";
import { useKeys } from "../../app/shortcuts.tsx";
import type { SessionSummary } from "../../data/queries.ts";
import { pressAnswer } from "../question/answer-buttons.tsx";

/** How long a card must be visible before a key answers it, in milliseconds. */
const SEEN_AFTER_MS = 500;

const keyOf = ({ session_id, question, status }: SessionSummary): string =>
  `${session_id} ${question?.question_id ?? status}`;

const cardOf = (session_id: string | undefined): Element | null =>
  session_id === undefined
    ? null
    : document.querySelector(`[data-testid=inbox-item][data-session="${CSS.escape(session_id)}"]`);

/**
 * The current card: `j` and `k` move it, `a` and `d` answer its question. It stays with its question when other cards arrive,
 * and a card that replaces an answered one cannot be answered before it was visible for a moment.
 */
export function useCurrentCard(rows: SessionSummary[]): { session_id: string | undefined; isSeen: boolean } {
  const [place, setPlace] = useState({ key: "", index: 0 });
  const [seen, setSeen] = useState("");
  const kept = rows.findIndex((row) => keyOf(row) === place.key);
  const index = kept >= 0 ? kept : Math.max(0, Math.min(place.index, rows.length - 1));
  const row = rows[index];
  const key = row ? keyOf(row) : "";
  useEffect(() => {
    setPlace({ key, index });
    const timer = setTimeout(() => setSeen(key), SEEN_AFTER_MS);
    return () => clearTimeout(timer);
  }, [key, index]);
  const isSeen = row !== undefined && seen === key;
  const move = (by: number) => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, index + by))];
    if (!next) return;
    setPlace({ key: keyOf(next), index: rows.indexOf(next) });
    cardOf(next.session_id)?.scrollIntoView({ block: "nearest" });
  };
  const answer = (letter: "a" | "d") => (event: KeyboardEvent) => {
    if (isSeen && !event.repeat) pressAnswer(cardOf(row?.session_id), letter);
  };
  useKeys({ j: () => move(1), k: () => move(-1), a: answer("a"), d: answer("d") });
  return { session_id: row?.session_id, isSeen };
}
