import assert from "node:assert/strict";
import type { Session } from "../../../src/domain/session.ts";
import { summaryOf } from "../../../src/domain/session-summary.ts";
import { summarize, summarizeAll } from "../../../src/store/session-summaries.ts";
import type { SummaryFilter } from "../../../src/store/store.ts";
import { aSession, mustCreate } from "../fixtures.ts";
import { describeClaims, type OpenStore } from "./opened-store.ts";

const STATUSES = ["running", "waiting", "paused", "stopping", "stopped", "done", "error"] as const;
const REASONS = [null, "max_steps", "destroyed", "max_tokens", "max_runtime_s"] as const;
const PAGE = { limit: 500, offset: 0 };

const FILTERS: Partial<SummaryFilter>[] = [
  {},
  { statuses: ["running", "error"] },
  { statuses: [] },
  { agent_id: "agent-1" },
  { moniker: "moniker-2", statuses: ["waiting"] },
  { q: "AGENT-1" },
  { q: "zurich" },
  { q: "50%_" },
  { q: "nowhere to be found" },
  { needs_person: true },
  { needs_person: true, statuses: ["stopped"] },
  { session_ids: [] },
  { needs_person: true, agent_id: "agent-0", q: "text" },
];

export function summaries(open: OpenStore): void {
  describeClaims("summaries of sessions", open, (claim) => {
    claim("are found by every filter, newest first, with a total and counts by status", async (store) => {
      const sessions = Array.from({ length: 42 }, (_, at) => variant(at));
      for (const session of sessions) await mustCreate(store, session);
      const some = sessions.filter((_, at) => at % 5 === 0).map(({ session_id }) => session_id);

      return async (reader) => {
        for (const filter of [...FILTERS, { session_ids: some, needs_person: true }]) {
          const found = await summarize(reader, { ...PAGE, ...filter });
          // What an engine does by its own means is what whole sessions would tell.
          assert.deepEqual(found, await summarizeAll(reader, { ...PAGE, ...filter }), JSON.stringify(filter));
          assert.equal(found.total, found.sessions.length);
          const second = await summarize(reader, { ...filter, limit: 2, offset: 1 });
          assert.deepEqual(second, { ...found, sessions: found.sessions.slice(1, 3) });
        }
        const everything = await summarize(reader, PAGE);
        assert.deepEqual(everything.sessions, sessions.map(summaryOf).toReversed());
        const asking = await summarize(reader, { ...PAGE, needs_person: true });
        assert.ok(asking.sessions.some(({ question }) => question === "may I?"));
        assert.ok(asking.sessions.every(({ stop_reason }) => stop_reason !== "destroyed"));
        assert.equal((await summarize(reader, { ...PAGE, q: "zurich" })).total, 3);
      };
    });
  });
}

/** Every status with every reason, some that ask, some with a text that must be folded or cut. */
function variant(at: number): Session {
  const status = STATUSES[at % STATUSES.length] as Session["status"];
  const texts = [`text ${at}`, "Zürich", "50%_ off", "x".repeat(1000), null, { data: at }];
  return aSession({
    agent_id: `agent-${at % 3}`,
    moniker: `moniker-${at % 4}`,
    status,
    stop_reason: status === "stopped" ? (REASONS[at % REASONS.length] ?? null) : null,
    context: at % 4 === 0 ? { question: { text: "may I?" } } : { question: null },
    result: at < 6 || at % 20 === 1 ? (texts[at % 20 === 1 ? 1 : at % texts.length] ?? null) : `text ${at}`,
    last_error: status === "error" ? "why" : null,
    created_at: new Date(Date.UTC(2026, 0, 1) + at * 1000).toISOString(),
  });
}
