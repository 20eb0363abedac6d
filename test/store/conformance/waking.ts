import assert from "node:assert/strict";
import { newId } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import { aSession, mustAdvance, mustCommit, mustCreate, WORKER, written } from "../fixtures.ts";
import { type OpenStore, testOnFreshStore } from "./opened-store.ts";

const at = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
const timeOf = (ms: number): number => Date.parse(at(ms));

async function change(store: Store, owned: OwnedSession, fields: Partial<Session>): Promise<OwnedSession> {
  const session = { ...owned.session, ...fields };
  await mustCommit(store, { sessions: [{ kind: "update", session, owner: owned.owner }] });
  return written(owned, session);
}

/** Which sessions continue by themselves, and when. */
export function waking(open: OpenStore): void {
  const test = testOnFreshStore(open);

  test("sessions that wait until a time are handed out in the order of their times, each once", async ({ store }) => {
    assert.equal(store.wakes.nextAt(), null);
    let earlier = 0;
    store.wakes.onEarlier(() => (earlier += 1));
    const times = [500, 100, 300, 100, 900, 200];
    const ids: string[] = [];
    for (const time of times) {
      const owned = await mustCreate(store, aSession());
      const { session } = (await mustAdvance(store, owned, { session: { status: "waiting", wake_at: at(time) } }))
        .owned;
      ids.push(session.session_id);
    }
    assert.equal(earlier, 2, "told when the earliest became earlier");
    assert.equal(store.wakes.nextAt(), timeOf(100));
    assert.deepEqual(store.wakes.takeDue(timeOf(99), 10), []);
    assert.deepEqual(new Set(store.wakes.takeDue(timeOf(250), 2)), new Set([ids[1], ids[3]]));
    assert.deepEqual(store.wakes.takeDue(timeOf(250), 10), [ids[5]]);
    store.wakes.putBack(ids[5] as string);
    assert.deepEqual(store.wakes.takeDue(timeOf(1000), 10), [ids[5], ids[2], ids[0], ids[4]]);
    assert.equal(store.wakes.nextAt(), null);
  });

  test("a session that waits no longer, or until another time, is not handed out for the old one", async ({
    store,
  }) => {
    const waits = { status: "waiting" as const, wake_at: at(100) };
    const create = async () => (await mustAdvance(store, await mustCreate(store), { session: waits })).owned;
    const [awake, paused, moved, gone, resumed] = [
      await create(),
      await create(),
      await create(),
      await create(),
      await create(),
    ];
    await change(store, awake, { status: "running", wake_at: null });
    await change(store, paused, { status: "paused" });
    await change(store, moved, { wake_at: at(300) });
    await change(store, gone, { status: "done", wake_at: null, ended_at: at(0) });
    await change(store, await change(store, resumed, { status: "paused" }), { status: "waiting" });
    const due = store.wakes.takeDue(timeOf(200), 10);
    assert.deepEqual([...new Set(due)], [resumed.session.session_id]);
    assert.deepEqual(store.wakes.takeDue(timeOf(400), 10), [moved.session.session_id]);
  });

  test("they are known again after a restart, once they are claimed", async ({ store, reopen }) => {
    const owned = await mustCreate(store, aSession());
    await mustAdvance(store, owned, { session: { status: "waiting", wake_at: at(100), rests_since: at(0) } });
    const unowned = aSession({ status: "waiting", wake_at: at(200), session_id: newId() });
    await mustCommit(store, { sessions: [{ kind: "create", session: unowned, worker: null }] });
    await store.releaseSessions({ worker: WORKER });
    const again = await reopen();
    const claimed = await again.claimSessions({ worker: WORKER, limit: 10 });
    assert.equal(claimed.length, 2);
    assert.deepEqual(again.wakes.takeDue(timeOf(1000), 10), [owned.session.session_id, unowned.session_id]);
  });
}
