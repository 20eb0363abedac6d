import assert from "node:assert/strict";
import { test } from "node:test";
import type { Session } from "../../src/domain/session.ts";
import { WakeIndex } from "../../src/store/owned-sessions.ts";
import { aSession } from "./fixtures.ts";
import { seededRandom, seedFrom } from "./seeded-random.ts";

test("whatever changes, what is due is what the rows say, and nothing more is kept in memory", (t) => {
  const seed = seedFrom("EVERSTEP_WAKE_SEED");
  t.diagnostic(`EVERSTEP_WAKE_SEED=${seed}`);
  const random = seededRandom(seed);
  const entries = new Map<string, { session: Session }>();
  const index = new WakeIndex(entries);
  const put = (session: Session): void => {
    const before = entries.get(session.session_id)?.session;
    entries.set(session.session_id, { session });
    index.changed(session, before);
  };
  const ids = Array.from({ length: 200 }, () => aSession().session_id) as [string, ...string[]];
  let now = 0;
  for (let turn = 0; turn < 20_000; turn += 1) {
    const session_id = random.pick(ids);
    if (random.integer(20) === 0) entries.delete(session_id);
    else {
      const waits = random.integer(3) > 0;
      const wake_at = new Date(now + random.integer(1000)).toISOString();
      put(aSession({ session_id, status: waits ? "waiting" : "running", wake_at: waits ? wake_at : null }));
    }
    if (turn % 50 > 0) continue;
    now += random.integer(100);
    const expected = [...entries.values()].flatMap(({ session }) =>
      session.wake_at !== null && Date.parse(session.wake_at) <= now ? [session.session_id] : [],
    );
    const due = index.takeDue(now, Number.POSITIVE_INFINITY);
    assert.deepEqual([...new Set(due)].sort(), expected.sort());
    for (const id of expected) put(aSession({ session_id: id, status: "running" }));
    const times = [...entries.values()].flatMap(({ session: { wake_at } }) => (wake_at ? [Date.parse(wake_at)] : []));
    assert.equal(index.nextAt(), times.length > 0 ? Math.min(...times) : null);
  }
});
