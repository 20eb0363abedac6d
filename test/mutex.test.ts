import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { KeyedMutex, Mutex } from "../src/concurrency/mutex.ts";

describe("a mutex", () => {
  test("runs work one at a time, in the order of arrival, also after a failure", async () => {
    const mutex = new Mutex();
    const log: string[] = [];
    const work = (name: string, fails: boolean) => async () => {
      log.push(`${name} begins`);
      await nextTurn();
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    };
    const all = [mutex.run(work("a", false)), mutex.run(work("b", true)), mutex.run(work("c", false))];
    const outcomes = await Promise.allSettled(all);
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : String(outcome.reason))),
      ["a", "Error: b", "c"],
    );
    assert.deepEqual(log, ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
    assert.ok(mutex.isFree);
  });

  test("that is released is passed to the next in line, and to nobody else before", async () => {
    const mutex = new Mutex();
    const order: string[] = [];
    const held = Promise.withResolvers<void>();
    const first = mutex.run(() => held.promise).then(() => mutex.run(async () => void order.push("late")));
    const second = mutex.run(async () => void order.push("waiting"));
    held.resolve();
    await Promise.all([first, second]);
    assert.deepEqual(order, ["waiting", "late"]);
  });

  test("that is free begins at once", async () => {
    const mutex = new Mutex();
    let hasBegun = false;
    const done = mutex.run(async () => {
      hasBegun = true;
    });
    assert.ok(hasBegun);
    await done;
  });
});

describe("a mutex by key", () => {
  test("holds up the same key only", async () => {
    const mutex = new KeyedMutex();
    const log: string[] = [];
    const held = Promise.withResolvers<void>();
    const first = mutex.run("a", async () => {
      await held.promise;
      log.push("first a");
    });
    const second = mutex.run("a", async () => void log.push("second a"));
    await mutex.run("b", async () => void log.push("b"));
    held.resolve();
    await Promise.all([first, second]);
    await mutex.run("a", async () => void log.push("third a"));
    assert.deepEqual(log, ["b", "first a", "second a", "third a"]);
  });
});
