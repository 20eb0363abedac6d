import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
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
    listener.onDelta((delta) => deltas.push(delta));
    // The news that the session was created may still be on its way.
    const firstStep = async () => {
      for await (const event of listener.follow({ session_id, after_iteration: -1 }, ending.signal))
        if (event.kind === "step") return event;
      return assert.fail("no step came");
    };
    const following = firstStep();
    const before = process.memoryUsage().rss;
    let largest = before;
    // Nothing is sent to processes that are not known to follow, which takes a moment: then the next step's text is tried.
    let truncated: StepDelta | undefined;
    for (let iteration = 0; truncated === undefined; iteration++) {
      for (let event_seq = 0; event_seq < 500_000; event_seq++) {
        teller.publishDelta(deltaOf(event_seq, "a ", { session_id, iteration }));
        if (event_seq % 10_000 === 0) largest = Math.max(largest, process.memoryUsage().rss);
      }
      await pause(300);
      truncated = deltas.find((delta) => delta.truncated);
    }
    const { step } = await mustAdvance(teller, owned);
    assert.deepEqual(await following, { kind: "step", step });
    assert.ok(largest - before < 100e6, `it grew by ${Math.round((largest - before) / 1e6)} MB`);
    const texts = deltas.filter(({ iteration }) => iteration === truncated.iteration).map(({ text }) => text);
    assert.match(texts.join(""), /^(?:a )+$/);
  });
});
