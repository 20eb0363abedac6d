import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { OrderedAdmission } from "../src/actions/ordered-admission.ts";

/** Jobs on one key, and which of them have started; exclusive ones in capitals. */
function watched() {
  const admission = new OrderedAdmission();
  const began: string[] = [];
  const ends = new Map<string, () => void>();
  const arrive = (name: string, mode: "shared" | "exclusive", lookUp: Promise<unknown> = Promise.resolve()) =>
    admission.admit("key", mode, lookUp, async (_, isExclusive) => {
      began.push(isExclusive ? name.toUpperCase() : name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await nextTurn();
  };
  return { arrive, began, end };
}

describe("ordered admission: requests", () => {
  test("start concurrently, in their order, however long each look-up takes", async () => {
    const { arrive, began, end } = watched();
    const slow = Promise.withResolvers<void>();
    const all = [arrive("first", "shared", slow.promise), arrive("second", "shared")];
    await nextTurn();
    assert.deepEqual(began, []);
    slow.resolve();
    await nextTurn();
    assert.deepEqual(began, ["first", "second"]);
    for (const name of began) await end(name);
    await Promise.all(all);
  });

  test("that are exclusive hold up those after them until their end", async () => {
    const { arrive, began, end } = watched();
    const all = [arrive("first", "exclusive"), arrive("second", "exclusive"), arrive("third", "shared")];
    await nextTurn();
    assert.deepEqual(began, ["FIRST"]);
    await end("first");
    assert.deepEqual(began, ["FIRST", "second", "third"], "none of those that waited is exclusive");
    for (const name of ["second", "third"]) await end(name);
    await Promise.all(all);
    const next = arrive("next", "exclusive");
    await nextTurn();
    await end("next");
    await next;
    assert.equal(began.at(-1), "NEXT");
  });

  test("are not exclusive while any other runs, even if a later one has ended", async () => {
    const { arrive, began, end } = watched();
    const all = [arrive("first", "shared"), arrive("second", "shared")];
    await nextTurn();
    await end("second");
    all.push(arrive("third", "exclusive"));
    await nextTurn();
    assert.deepEqual(began, ["first", "second", "third"]);
    for (const name of ["first", "third"]) await end(name);
    await Promise.all(all);
  });

  test("whose look-up fails get the error in their turn, and hold up nobody", async () => {
    const { arrive, began, end } = watched();
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    const first = arrive("first", "exclusive");
    const lost = Promise.reject(new Error("out of reach"));
    const failing = assert.rejects(arrive("failing", "exclusive", lost), /out of reach/);
    const last = arrive("last", "exclusive");
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
