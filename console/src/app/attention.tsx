import { useEffect, useRef } from "react";
import { notify } from "../data/notifications.ts";
import { type SessionSummary, useNeedsMe } from "../data/queries.ts";
import { setTitleBadge } from "../ui/page-title.ts";
import { go, sessionHref } from "./router.ts";

/** Says that somebody is needed in the tab's title and, if enabled, as a notification. */
export function Attention() {
  const { data } = useNeedsMe();
  const previousNeeds = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => setTitleBadge(data?.total ?? 0), [data?.total]);
  useEffect(() => {
    if (!data) return;
    const before = previousNeeds.current;
    previousNeeds.current = new Set(data.sessions.map(needOf));
    // What was there when the page opened is already visible.
    if (before === null || document.hasFocus()) return;
    for (const row of data.sessions) if (!before.has(needOf(row))) tell(row);
  }, [data]);
  return null;
}

const needOf = ({ session_id, question, status }: SessionSummary): string =>
  `${session_id} ${question?.question_id ?? status}`;

function tell(row: SessionSummary): void {
  notify(`${row.agent_id} ${whyOf(row)}`, {
    body: row.question?.text ?? row.last_error ?? row.text ?? "",
    tag: needOf(row),
    onOpen: () => go(sessionHref(row.session_id)),
  });
}

function whyOf({ question, status }: SessionSummary): string {
  if (question !== null) return "asks a question";
  if (status === "error") return "failed";
  return status === "paused" ? "is held" : "reached a limit";
}
