import assert from "node:assert/strict";
import { test } from "node:test";
import type { StepDelta } from "../../src/domain/event.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { deltaOf, mustAdvance, mustCreate } from "./fixtures.ts";

await onPostgres(() => {
  test("a megabyte of short words in one step: bounded memory, and rows come all the same", {
    timeout: 60_000,
  }, async (t) => {
    const { url, remove } = await postgresHome();
    const [teller, listener] = [await openPostgresStore({ url }), await openPostgresStore({ url })];
    const ending = new AbortController();
    t.after(async () => {
      ending.abort();
      await Promise.all([teller.close(), listener.close()]);
      await remove();
    });
    const owned = await mustCreate(teller);
    const { session_id } = owned.session;
    const deltas: StepDelta[] = [];
    const truncated = Promise.withResolvers<void>();
    listener.onDelta((delta) => {
      deltas.push(delta);
      if (delta.truncated) truncated.resolve();
    });
    // The news that the session was created may still be on its way.
    const firstStep = async () => {
      for await (const event of listener.follow({ session_id, after_iteration: -1 }, ending.signal))
        if (event.kind === "step") return event;
      return assert.fail("no step came");
    };
    const following = firstStep();
    // Another process has a follower, so deltas are sent to it.
    while (deltas.length === 0) {
      teller.publishDelta(deltaOf(0, "begun", { session_id }));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const before = process.memoryUsage().rss;
    let largest = before;
    for (let event_seq = 0; event_seq < 500_000; event_seq++) {
      teller.publishDelta(deltaOf(event_seq, "a ", { session_id }));
      if (event_seq % 10_000 === 0) largest = Math.max(largest, process.memoryUsage().rss);
    }
    const { step } = await mustAdvance(teller, owned);
    assert.deepEqual(await following, { kind: "step", step });
    assert.ok(largest - before < 100e6, `it grew by ${Math.round((largest - before) / 1e6)} MB`);
    await truncated.promise;
    assert.equal(deltas.at(-1)?.truncated, true);
    const told = deltas.slice(deltas.findLastIndex(({ event_seq }) => event_seq === 0)).map(({ text }) => text);
    assert.match(told.join(""), /^(?:a )+$/);
  });
});
