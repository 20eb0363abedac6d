import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { copyDurably } from "../../src/files/durable-copy.ts";
import { checkFolder } from "../../src/store/embedded/check-folder.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { everstep } from "../server/command.ts";
import { TIMEOUT } from "../server/server-fixture.ts";
import { advance, aSession, mustCommit, WORKER } from "./fixtures.ts";
import { scratchFolder } from "./scratch-folder.ts";

const SESSIONS = 8;
const COPIES = 4;

/** Commits a session's steps until told to stop; `acknowledged` is the last acknowledged iteration. */
async function keepStepping(
  store: Store,
  session_id: string,
  acknowledged: Map<string, number>,
  isOver: () => boolean,
) {
  let owned = (await store.claimSession({ worker: WORKER, session_id })) as OwnedSession;
  while (!isOver()) {
    const next = advance(owned, { state: { n: owned.session.iteration + 1, text: "x".repeat(300) } });
    await mustCommit(store, next.batch);
    owned = next.owned;
    acknowledged.set(session_id, owned.session.iteration);
  }
}

test(
  "a copy that is staged while steps are committed and moved has all that was acknowledged, and no gap",
  TIMEOUT,
  async () => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "data");
    const store = await openEmbeddedStore({
      folder,
      tuning: {
        move_after_rows: 40,
        move_after_ms: 20,
        compact_after_fragments: 3,
      },
    });
    const sessions = Array.from({ length: SESSIONS }, () => aSession());
    for (const session of sessions)
      await mustCommit(store, { sessions: [{ kind: "create", session, worker: WORKER }] });
    const acknowledged = new Map<string, number>();
    let isOver = false;
    const stepping = sessions.map(({ session_id }) => keepStepping(store, session_id, acknowledged, () => isOver));
    const copies: { folder: string; acknowledged: Map<string, number> }[] = [];
    for (let index = 0; index < COPIES; index += 1) {
      await new Promise((resolve) => setTimeout(resolve, 150));
      const before = new Map(acknowledged);
      const staged = await store.stageBackup();
      const copy = join(scratch.path, `copy-${index}`);
      await copyDurably(staged, copy);
      copies.push({ folder: copy, acknowledged: before });
    }
    const other = await everstep(["check", folder]);
    assert.match(other.stderr, /store_locked/, "the folder still belongs to this process alone");
    isOver = true;
    await Promise.all(stepping);
    await store.close();
    assert.ok((copies.at(-1)?.acknowledged.get(sessions[0]?.session_id ?? "") ?? 0) > 20, "something was going on");

    for (const copy of copies) {
      assert.deepEqual((await checkFolder(copy.folder)).problems, []);
      const copied = await openEmbeddedStore({ folder: copy.folder });
      for (const { session_id } of sessions) {
        const session = await copied.getSession(session_id);
        const iteration = session?.iteration ?? -1;
        assert.ok(iteration >= (copy.acknowledged.get(session_id) ?? -1), `${session_id} stops at ${iteration}`);
        const last = await copied.listSteps({ session_id, limit: 500, offset: Math.max(0, iteration - 30) });
        assert.deepEqual(
          last.map((step) => step.iteration),
          Array.from({ length: last.length }, (_, index) => Math.max(0, iteration - 30) + index),
        );
        assert.equal(last.at(-1)?.iteration, iteration);
      }
      await copied.close();
    }
  },
);

test("a staged copy is removed by the next one, on request, and at a start", TIMEOUT, async () => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "data");
  let store = await openEmbeddedStore({ folder });
  const first = await store.stageBackup();
  const second = await store.stageBackup();
  assert.deepEqual([existsSync(first), existsSync(second)], [false, true]);
  await store.close();
  store = await openEmbeddedStore({ folder });
  assert.equal(existsSync(second), false);
  const third = await store.stageBackup();
  await store.removeStagedBackup();
  assert.equal(existsSync(third), false);
  await store.close();
});
