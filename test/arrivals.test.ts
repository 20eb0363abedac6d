import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Arrivals } from "../src/queue/arrivals.ts";

/** Works on one key, and what began so far; those that are alone in capitals. */
function watched() {
  const arrivals = new Arrivals();
  const began: string[] = [];
  const ends = new Map<string, () => void>();
  const arrive = (name: string, wish: "side by side" | "alone", lookUp: Promise<unknown> = Promise.resolve()) =>
    arrivals.inOrder("key", wish, lookUp, async (_, isAlone) => {
      began.push(isAlone ? name.toUpperCase() : name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await nextTurn();
  };
  return { arrive, began, end };
}

describe("arrivals", () => {
  test("begin side by side, in their order, however long each looks something up", async () => {
    const { arrive, began, end } = watched();
    const slow = Promise.withResolvers<void>();
    const all = [arrive("first", "side by side", slow.promise), arrive("second", "side by side")];
    await nextTurn();
    assert.deepEqual(began, []);
    slow.resolve();
    await nextTurn();
    assert.deepEqual(began, ["first", "second"]);
    for (const name of began) await end(name);
    await Promise.all(all);
  });

  test("that are alone hold up those after them until their end", async () => {
    const { arrive, began, end } = watched();
    const all = [arrive("first", "alone"), arrive("second", "alone"), arrive("third", "side by side")];
    await nextTurn();
    assert.deepEqual(began, ["FIRST"]);
    await end("first");
    assert.deepEqual(began, ["FIRST", "second", "third"], "of those that waited none is alone");
    for (const name of ["second", "third"]) await end(name);
    await Promise.all(all);
    const next = arrive("next", "alone");
    await nextTurn();
    await end("next");
    await next;
    assert.equal(began.at(-1), "NEXT");
  });

  test("are not alone while any is under way, also where a later one ended", async () => {
    const { arrive, began, end } = watched();
    const all = [arrive("first", "side by side"), arrive("second", "side by side")];
    await nextTurn();
    await end("second");
    all.push(arrive("third", "alone"));
    await nextTurn();
    assert.deepEqual(began, ["first", "second", "third"]);
    for (const name of ["first", "third"]) await end(name);
    await Promise.all(all);
  });

  test("whose look-up fails are told so in their turn, and hold up nobody", async () => {
    const { arrive, began, end } = watched();
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    const first = arrive("first", "alone");
    const lost = Promise.reject(new Error("out of reach"));
    const failing = assert.rejects(arrive("failing", "alone", lost), /out of reach/);
    const last = arrive("last", "alone");
    await nextTurn();
    await end("first");
    await failing;
    await nextTurn();
    assert.deepEqual(began, ["FIRST", "last"]);
    await end("last");
    await Promise.all([first, last]);
    process.off("unhandledRejection", note);
    assert.deepEqual(unhandled, []);
  });
});
