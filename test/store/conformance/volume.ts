import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { OwnedSession, Store } from "../../../src/store/store.ts";
import { repetitions } from "../../repetitions.ts";
import { aSession, mustAdvance, mustCreate, WORKER } from "../fixtures.ts";
import type { OpenStore } from "./opened-store.ts";

const SESSIONS = 100;
const STEPS = repetitions("EVERSTEP_VOLUME_STEPS", { few: 110, many: 1_000 });
const MEBIBYTE = 2 ** 20;

const sessionId = (at: number): string => `session-${at}`;
const stateAt = (at: number, iteration: number): { at: number; seen: number[]; note: string } => ({
  at,
  seen: Array.from({ length: Math.min(20, iteration + 1) }, (_, back) => iteration - back),
  note: "n".repeat(iteration % 100),
});

async function run(store: Store, at: number): Promise<OwnedSession> {
  let owned = await mustCreate(store, aSession({ session_id: sessionId(at), agent_id: `agent-${at % 10}` }));
  for (let iteration = 0; iteration < STEPS; iteration++)
    ({ owned } = await mustAdvance(store, owned, { state: stateAt(at, iteration), text: `step ${iteration}` }));
  return owned;
}

async function assertAll(store: Store, sessions: OwnedSession[]): Promise<void> {
  assert.equal((await store.counts()).sessions.running, SESSIONS);
  for (const at of [0, 42, 99]) {
    const session_id = sessionId(at);
    assert.deepEqual(await store.getSession(session_id), sessions[at]?.session);
    assert.equal((await store.latestStep({ session_id }))?.iteration, STEPS - 1);
    for (const offset of [0, 1, STEPS / 2 - 1, STEPS / 2, STEPS - 100, STEPS - 10, STEPS, STEPS * 5]) {
      const page = await store.listSteps({ session_id, limit: 100, offset });
      assert.deepEqual(
        page.map(({ iteration, state }) => ({ iteration, state })),
        Array.from({ length: Math.max(0, Math.min(100, STEPS - offset)) }, (_, row) => ({
          iteration: offset + row,
          state: stateAt(at, offset + row),
        })),
      );
    }
  }
  const [first] = await store.listSteps({ agent_id: "agent-3", min_iteration: STEPS / 2, limit: 500, offset: 0 });
  assert.equal(first?.iteration, STEPS / 2);
  const ofAgent = await store.listSteps({ agent_id: "agent-3", limit: 500, offset: STEPS * 10 - 100 });
  assert.equal(ofAgent.length, 100);
  assert.ok(ofAgent.every(({ iteration }) => iteration >= STEPS - 10));
}

export function volume(open: OpenStore): void {
  describe("volume", () => {
    test(`${SESSIONS * STEPS} steps, committed side by side, are all there and stay on disk`, {
      timeout: 120_000,
    }, async (t) => {
      const opened = await open();
      try {
        const before = process.memoryUsage.rss();
        const sessions = await Promise.all(Array.from({ length: SESSIONS }, (_, at) => run(opened.store, at)));
        const grown = (process.memoryUsage.rss() - before) / MEBIBYTE;
        t.diagnostic(`the process grew by ${Math.round(grown)} MiB`);
        assert.ok(grown < 500, `the process grew by ${Math.round(grown)} MiB`);
        await assertAll(opened.store, sessions);
        const reopened = await opened.reopen();
        await assertAll(reopened, sessions);
        const claimed = await reopened.claimSessions({ worker: WORKER, limit: 500 });
        assert.equal(claimed.length, SESSIONS);
        for (const owned of claimed.slice(0, 3)) await mustAdvance(reopened, owned);
      } finally {
        await opened.destroy();
      }
    });
  });
}
