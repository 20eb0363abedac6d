import assert from "node:assert/strict";
import { isLive, SESSION_STATUSES, type Session, type SessionStatus } from "../../../src/domain/session.ts";
import { needsPerson, type SessionSummary, searchedText, summaryOf } from "../../../src/domain/session-summary.ts";
import { folded } from "../../../src/domain/words.ts";
import type { SessionSort, SessionSummaries, Store, SummaryFilter } from "../../../src/store/store.ts";
import { advance, aQuestion, aSession, aTime, mustAdvance, mustCommit, mustCreate, WORKER } from "../fixtures.ts";
import { reportedRandom, type SeededRandom } from "../seeded-random.ts";
import { describeClaims, type OpenStore } from "./opened-store.ts";

const REASONS = [null, "max_steps", "destroyed", "max_tokens", "max_runtime_s", "max_cost_usd"] as const;
const PAGE = { limit: 500, offset: 0 };

const FILTERS: Partial<SummaryFilter>[] = [
  {},
  { statuses: ["running", "error"] },
  { statuses: ["error", "error"] },
  { statuses: [] },
  { agent_id: "agent-1" },
  { agent_id: "agent-1", statuses: ["stopped", "done"] },
  { agent_id: "agent-1", moniker: "moniker-2" },
  { agent_id: "nobody" },
  { moniker: "moniker-2" },
  { moniker: "moniker-2", statuses: ["waiting"] },
  { q: "AGENT-1" },
  { q: "zurich" },
  { q: "ZÜR", statuses: ["paused"] },
  { q: "50%_" },
  { q: "%" },
  { q: '"data":4' },
  { q: "x" },
  { q: "xx" },
  { q: "\u0000" },
  { q: "\u0301" },
  { q: "дня" },
  { q: "nowhere to be found" },
  { needs_person: true },
  { needs_person: true, statuses: ["stopped"] },
  { needs_person: true, moniker: "moniker-0" },
  { session_ids: [] },
  { needs_person: true, agent_id: "agent-0", q: "text" },
  { spawned_by: "spawner" },
  { spawned_by: "spawner", statuses: ["running", "waiting"] },
  { spawned_by: "spawner", q: "text" },
  { spawned_by: "nobody" },
  { parent_session_id: "forked" },
  { parent_session_id: "forked", statuses: ["running", "done"], agent_id: "agent-1" },
  { parent_session_id: "forked", q: "text" },
  { parent_session_id: "forked", spawned_by: "spawner" },
  { parent_session_id: "nobody" },
  { since: "2026-01-01T00:00:30.000Z" },
  { since: "2026-01-01T00:00:30.000Z", statuses: ["running", "done"], moniker: "moniker-0" },
  { since: "2026-01-01T00:00:20.000Z", agent_id: "agent-1", q: "text" },
  { since: "2026-01-01T00:00:20.000Z", needs_person: true },
  { since: "2026-01-01T00:00:20.000Z", spawned_by: "spawner" },
];

export function summaries(open: OpenStore): void {
  describeClaims("summaries of sessions", open, (claim) => {
    claim("are found by every filter, newest first, with a total and counts by status", async (store) => {
      const forked = await mustCreate(store, aSession({ session_id: "forked" }));
      await mustAdvance(store, forked);
      const sessions = Array.from({ length: 42 }, (_, at) => variant(at));
      for (const session of sessions) await mustCreate(store, session);
      const some = sessions.filter((_, at) => at % 5 === 0).map(({ session_id }) => session_id);
      const ownIds = new Set(sessions.map(({ session_id }) => session_id));
      const everything = sessions.map(summaryOf).toReversed();

      return async (reader) => {
        for (const filter of [
          ...FILTERS,
          { session_ids: some },
          { session_ids: some, needs_person: true },
          { session_ids: some, parent_session_id: "forked" },
        ])
          for (const sort of ["created_at", "updated_at"] as const) {
            const asked: SummaryFilter = { ...PAGE, ...filter, sort };
            const result = await reader.summarizeSessions(asked);
            const expected = expectedOf(everything, asked);
            const label = JSON.stringify(asked);
            // Other claims on this store have their own sessions.
            assert.deepEqual(
              result.sessions.filter(({ session_id }) => ownIds.has(session_id)),
              expected.sessions,
              label,
            );
            assert.equal(result.exact, true);
            const sum = [...new Set(asked.statuses ?? SESSION_STATUSES)].reduce(
              (total, status) => total + result.counts[status],
              0,
            );
            assert.deepEqual([result.total, sum], [result.sessions.length, result.sessions.length], label);
            const { statuses: _, q: __, moniker: ___, session_ids: ____, since: _____, ...whole } = asked;
            if (filter.needs_person || filter.spawned_by || filter.parent_session_id)
              assert.deepEqual(
                (await reader.listSessions(whole)).map(summaryOf),
                (await reader.summarizeSessions(whole)).sessions,
                label,
              );
            const second = await reader.summarizeSessions({ ...asked, limit: 2, offset: 1 });
            assert.deepEqual(second, { ...result, sessions: result.sessions.slice(1, 3) }, label);
          }
        const asking = await reader.summarizeSessions({ ...PAGE, needs_person: true });
        assert.ok(asking.sessions.some(({ question }) => question?.text === "may I?"));
        assert.ok(asking.sessions.every(({ stop_reason }) => stop_reason !== "destroyed"));
      };
    });

    claim("follow a session through its life: what it asks, says and is", async (store) => {
      const agent_id = "followed";
      const look = async (filter: Partial<SummaryFilter>): Promise<string> => {
        const { sessions, counts, total } = await store.summarizeSessions({ ...PAGE, agent_id, ...filter });
        const counted = Object.entries(counts).filter(([, count]) => count > 0);
        return [...sessions.map(({ question, text }) => `${text} ${question?.text}`), total, ...counted.flat()].join(
          " ",
        );
      };
      let owned = await mustCreate(store, aSession({ agent_id, moniker: "asker" }));
      assert.equal(await look({}), "null undefined 1 running 1");
      assert.equal(await look({ needs_person: true }), "0");

      owned = (await mustAdvance(store, owned, { text: "first", session: { question: aQuestion("may I?") } })).owned;
      assert.equal(await look({ needs_person: true }), "first may I? 1 running 1");
      assert.equal(await look({ q: "FIRST" }), "first may I? 1 running 1");

      owned = (await mustAdvance(store, owned, { text: "second", session: { question: null } })).owned;
      assert.equal(await look({ needs_person: true }), "0");
      assert.equal(await look({ q: "first" }), "0");
      assert.equal(await look({ q: "econ", moniker: "asker" }), "second undefined 1 running 1");

      const ended = advance(owned, {
        text: "third",
        session: { status: "error", last_error: "why", ended_at: owned.session.updated_at },
      });
      await mustCommit(store, ended.batch);
      assert.equal(await look({ needs_person: true }), "third undefined 1 error 1");
      assert.equal(await look({ statuses: ["running"] }), "0 error 1");

      const claimed = await store.claimSession({ worker: WORKER, session_id: owned.session.session_id });
      assert.ok(claimed);
      const asks = {
        question: aQuestion("once more", { about: { zero: "\u0000" }, choices: [{ value: 1, label: "ü" }] }),
      };
      const resumed: Session = { ...claimed.session, ...asks, status: "waiting", last_error: null, ended_at: null };
      await mustCommit(store, { sessions: [{ kind: "update", session: resumed, owner: claimed.owner }] });
      assert.equal(await look({ needs_person: true }), "third once more 1 waiting 1");
      return async (reader) => {
        const result = await reader.summarizeSessions({ ...PAGE, agent_id, q: "third" });
        assert.deepEqual([result.total, result.sessions[0]?.question], [1, asks.question]);
        assert.equal((await reader.getAgent(agent_id))?.session_count, 1);
      };
    });

    claim("show after each change what a session is then, in every list that it entered or left", async (store, t) => {
      const random = reportedRandom(t, "SUMMARIES_SEED");
      const agent_id = "changing";
      const sessions: Session[] = [];
      for (let at = 0; at < 8; at++) {
        const session = aSession({ agent_id, moniker: `changing-${at % 2}`, result: `made ${at}` });
        await mustCreate(store, session);
        sessions.push(session);
      }
      const filters: Partial<SummaryFilter>[] = [
        { needs_person: true },
        { needs_person: true, moniker: "changing-1" },
        { statuses: ["running", "paused"] },
        { statuses: ["stopped", "done", "error"], moniker: "changing-0" },
        { q: "became 1" },
        { q: "became", statuses: ["waiting"], needs_person: true },
        { session_ids: sessions.slice(2, 5).map(({ session_id }) => session_id), needs_person: true },
      ];
      const compare = async (reader: Store): Promise<void> => {
        const newest = sessions.map(summaryOf).toReversed();
        for (const filter of [{}, ...filters])
          for (const sort of ["created_at", "updated_at"] as const) {
            const asked: SummaryFilter = { ...PAGE, agent_id, ...filter, sort };
            const { sessions: rows, counts, total } = await reader.summarizeSessions(asked);
            const expected = expectedOf(newest, asked).sessions;
            assert.deepEqual(rows, expected, JSON.stringify(asked));
            const { statuses: _, ...anyStatus } = asked;
            const fitting = expectedOf(newest, anyStatus).sessions.map(({ status }) => status);
            assert.deepEqual(counts, countsOf(fitting), JSON.stringify(asked));
            assert.equal(total, expected.length);
          }
      };
      for (let change = 0; change < 20; change++) {
        const at = random.integer(sessions.length);
        const { session_id } = sessions[at] as Session;
        const claimed = await store.claimSession({ worker: WORKER, session_id });
        assert.ok(claimed);
        const session = changed(claimed.session, random, change);
        await mustCommit(store, { sessions: [{ kind: "update", session, owner: claimed.owner }] });
        sessions[at] = session;
        await compare(store);
      }
      return compare;
    });

    claim("of a status are listed page after page while sessions leave and enter it", async (store) => {
      const agent_id = "leaving";
      const owned = [];
      for (let at = 0; at < 9; at++) owned.push(await mustCreate(store, aSession({ agent_id })));
      const ids = owned.map(({ session }) => session.session_id).toReversed();
      const seen: string[] = [];
      for (let last: SessionSummary | undefined; ; ) {
        const after = last && { session_id: last.session_id, at: last.created_at };
        const page = { agent_id, statuses: ["running" as const], limit: 3, offset: 0, ...(after && { after }) };
        const { sessions } = await store.summarizeSessions(page);
        seen.push(...sessions.map(({ session_id }) => session_id));
        last = sessions.at(-1);
        if (sessions.length < 3) break;
        // The last session of the page leaves the list, so the next page begins after one that is no longer there.
        const left = owned.find(({ session }) => session.session_id === last?.session_id);
        assert.ok(left);
        await mustAdvance(store, left, { session: { status: "done", ended_at: left.session.updated_at } });
      }
      assert.deepEqual(seen, ids);
      return async (reader) => {
        const { counts } = await reader.summarizeSessions({ ...PAGE, agent_id, statuses: ["done"] });
        assert.deepEqual([counts.running, counts.done], [6, 3]);
      };
    });

    claim("and whole sessions are listed page after page while others are made and updated", async (store) => {
      const agent_id = "paged";
      const create = () => mustCreate(store, aSession({ agent_id }));
      const owned = [];
      for (let at = 0; at < 9; at++) owned.push(await create());
      const [first, second, , , , , , eighth] = owned;
      assert.ok(first && second && eighth);
      // By their last update, the second one is the newest.
      await mustAdvance(store, second);
      const byCreation = owned.map(({ session }) => session.session_id).toReversed();
      const byUpdate = [second.session.session_id, ...byCreation.filter((id) => id !== second.session.session_id)];
      for (const [sort, expected] of [
        ["created_at", byCreation],
        ["updated_at", byUpdate],
      ] as const) {
        let moving = await create();
        const seen = await readPages(store, { agent_id, sort }, async () => {
          await create();
          moving = (await mustAdvance(store, moving)).owned;
        });
        assert.deepEqual(
          seen.filter((id) => expected.includes(id)),
          expected,
          sort,
        );
        assert.equal(new Set(seen).size, seen.length);
      }
      const gone = { session_id: "gone", at: first.session.created_at };
      const left = await store.listSessions({ ...PAGE, agent_id, sort: "created_at", after: gone });
      assert.deepEqual(
        left.map(({ session_id }) => session_id),
        [first.session.session_id],
      );
      return async (reader) => {
        for (const sort of ["created_at", "updated_at"] as const)
          assert.deepEqual(
            await readPages(reader, { agent_id, sort }),
            (await reader.listSessions({ ...PAGE, agent_id, sort })).map(({ session_id }) => session_id),
          );
      };
    });
  });
}

/** The ids of all pages, for lists with and without states, which must be the same. */
async function readPages(
  store: Store,
  filter: { agent_id: string; sort: SessionSort },
  between = async (): Promise<void> => {},
): Promise<string[]> {
  const ids: string[] = [];
  for (let last: SessionSummary | undefined; ; ) {
    const after = last && { session_id: last.session_id, at: last[filter.sort] };
    const page = { ...filter, limit: 3, offset: 0, ...(after && { after }) };
    const [sessions, result] = [await store.listSessions(page), await store.summarizeSessions(page)];
    assert.deepEqual(result.sessions, sessions.map(summaryOf));
    ids.push(...sessions.map(({ session_id }) => session_id));
    if (sessions.length < 3) return ids;
    last = result.sessions.at(-1);
    await between();
  }
}

/** The expected list, computed from whole sessions, newest first. */
function expectedOf(all: SessionSummary[], filter: SummaryFilter): Pick<SessionSummaries, "sessions"> {
  const { statuses, agent_id, moniker, q, session_ids, needs_person, spawned_by, sort, since = "" } = filter;
  const { parent_session_id } = filter;
  const sessions = all.filter(
    (summary) =>
      (statuses?.includes(summary.status) ?? true) &&
      summary.agent_id === (agent_id ?? summary.agent_id) &&
      summary.moniker === (moniker ?? summary.moniker) &&
      (q === undefined || searchedText(summary).includes(folded(q))) &&
      (session_ids?.includes(summary.session_id) ?? true) &&
      (spawned_by === undefined || summary.spawned_by?.session_id === spawned_by) &&
      (parent_session_id === undefined || summary.parent_session_id === parent_session_id) &&
      (!needs_person || needsPerson(summary)) &&
      summary[sort ?? "created_at"] >= since,
  );
  return {
    sessions:
      sort === "updated_at" ? sessions.sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at)) : sessions,
  };
}

function countsOf(statuses: SessionStatus[]): Record<string, number> {
  const count = (status: SessionStatus): number => statuses.filter((other) => other === status).length;
  return Object.fromEntries(SESSION_STATUSES.map((status) => [status, count(status)]));
}

/** Another status with its related fields, and another text. */
function changed(session: Session, random: SeededRandom, change: number): Session {
  const status = random.pick(SESSION_STATUSES);
  const at = aTime();
  const held = random.pick([
    { kind: "breakpoint", step_token: "1" },
    { kind: "person", reason: "wait" },
  ] as const);
  return {
    ...session,
    status,
    stop_reason: status === "stopped" ? random.pick(["max_cost_usd", "destroyed", "max_steps"]) : null,
    pause_reason: status === "paused" ? held : null,
    question: isLive(status) && random.integer(2) === 1 ? aQuestion("may I?") : null,
    result: random.integer(3) === 0 ? session.result : `became ${change}`,
    last_error: status === "error" ? "why" : null,
    updated_at: at,
    ended_at: isLive(status) ? null : at,
  };
}

/** Every status with every reason; some ask, some are held, some have a text that must be normalized or cut. */
function variant(at: number): Session {
  const status = SESSION_STATUSES[at % SESSION_STATUSES.length] as Session["status"];
  const texts = [`text ${at}`, "Zürich", "50%_ off", "x".repeat(1000), null, { data: at }, "два дня \u0000 😀"];
  const created_at = new Date(Date.UTC(2026, 0, 1) + at * 1000).toISOString();
  const held = { kind: "breakpoint", step_token: at % 2 ? "3" : "\u0000" } as const;
  const asked = { kind: "person", reason: at % 2 ? "wait" : '\u0000"kind":"breakpoint"' } as const;
  return aSession({
    agent_id: `agent-${at % 3}`,
    moniker: `moniker-${at % 4}`,
    status,
    stop_reason: status === "stopped" ? (REASONS[at % REASONS.length] ?? null) : null,
    pause_reason: status === "paused" ? (at % 3 ? held : asked) : null,
    question: at % 4 === 0 && isLive(status) ? aQuestion("may I?") : null,
    spawned_by: at % 5 === 0 ? { session_id: "spawner", iteration: at } : null,
    ...(at % 3 === 1 && { parent_session_id: "forked", parent_iteration: 0, iteration: 0, context: { n: 0 } }),
    result: at < 7 || at % 20 === 1 ? (texts[at % 20 === 1 ? 1 : at % texts.length] ?? null) : `text ${at}`,
    last_error: status === "error" ? "why" : null,
    created_at,
    // In another order than they were created, some at the same time.
    updated_at: new Date(Date.parse(created_at) + (at % 6 === 0 ? 100_000 : (at % 10) * 3000)).toISOString(),
  });
}
