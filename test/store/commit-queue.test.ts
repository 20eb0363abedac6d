import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import {
  CommitQueue,
  type CommitQueueOptions,
  type GroupWriter,
  type QueuedBatch,
  type Written,
} from "../../src/store/commit-queue.ts";
import { reportedRandom } from "./seeded-random.ts";

type Batch = QueuedBatch & { name: string };
const COMMITTED: Written<null> = { outcome: { kind: "committed" }, feedback: null };

const batch = (
  name: string,
  { kind = "step", scopes = [name], keys = scopes, characters = 1 }: Partial<Batch> = {},
): Batch => ({
  name,
  kind,
  scopes,
  keys,
  characters,
});

/** A writer whose groups end when the test says so. */
class HeldWriter implements GroupWriter<Batch, null> {
  readonly groups: { names: string[]; end: (answers?: Written<null>[]) => void; fail: (error: Error) => void }[] = [];

  write(batches: Batch[]): Promise<Written<null>[]> {
    const { promise, resolve, reject } = Promise.withResolvers<Written<null>[]>();
    const end = (answers = batches.map(() => COMMITTED)): void => resolve(answers);
    this.groups.push({ names: batches.map(({ name }) => name), end, fail: reject });
    return promise;
  }

  get names(): string[][] {
    return this.groups.map(({ names }) => names);
  }
}

function queueOn(writers: GroupWriter<Batch, null>[], options: Partial<CommitQueueOptions<Batch, null>> = {}) {
  return new CommitQueue<Batch, null>({
    writers,
    most: { batches: 100, characters: 1000 },
    isWorthGroup: () => false,
    schedule: setImmediate,
    isEager: true,
    ...options,
  });
}

describe("the commit queue", () => {
  test("writes a lone commit at once, and what arrives meanwhile as one group after it", async () => {
    const writer = new HeldWriter();
    const queue = queueOn([writer]);
    const first = queue.commit(batch("a"), () => {});
    await turn();
    assert.deepEqual(writer.names, [["a"]]);
    const others = ["b", "c", "d"].map((name) => queue.commit(batch(name), () => {}));
    await turn();
    assert.deepEqual(writer.names, [["a"]], "it waits for the group under way");
    writer.groups[0]?.end();
    assert.deepEqual(await first, { kind: "committed" });
    await turn();
    assert.deepEqual(writer.names, [["a"], ["b", "c", "d"]]);
    writer.groups[1]?.end();
    await Promise.all(others);
    await queue.drained();
  });

  test("has batches of one kind in a group, and writes another kind beside it", async () => {
    const [one, two] = [new HeldWriter(), new HeldWriter()];
    const queue = queueOn([one, two]);
    for (const [name, kind] of [
      ["a", "step"],
      ["x", "rows"],
      ["b", "step"],
    ] as const)
      void queue.commit(batch(name, { kind }), () => {});
    await turn();
    assert.deepEqual(
      [...one.names, ...two.names].toSorted(([a = ""], [b = ""]) => a.localeCompare(b)),
      [["a", "b"], ["x"]],
    );
    for (const group of [...one.groups, ...two.groups]) group.end();
    await queue.drained();
  });

  test("keeps to the limits of a group; a batch that is larger goes alone", async () => {
    const writer = new HeldWriter();
    const queue = queueOn([writer], { most: { batches: 2, characters: 10 } });
    for (const [name, characters] of [
      ["a", 1],
      ["b", 1],
      ["c", 1],
      ["large", 50],
      ["d", 6],
      ["e", 6],
    ] as const)
      void queue.commit(batch(name, { characters }), () => {});
    for (let at = 0; at < 5; at += 1) {
      await turn();
      writer.groups[at]?.end();
      await turn();
    }
    await queue.drained();
    assert.deepEqual(writer.names, [["a", "b"], ["c", "d"], ["large"], ["e"]]);
  });

  test("gives each commit its outcome, after its own callback", async () => {
    const writer = new HeldWriter();
    const queue = queueOn([writer]);
    const heard: string[] = [];
    const commit = (name: string): Promise<unknown> => queue.commit(batch(name), () => heard.push(name));
    const answers = ["good", "fenced", "bad"].map((name) => commit(name).catch((error: unknown) => error));
    await turn();
    const refused = new Error("refused");
    writer.groups[0]?.end([
      COMMITTED,
      { outcome: { kind: "fenced", session_id: "fenced" } as never, feedback: null },
      { error: refused },
    ]);
    const [good, fenced, bad] = await Promise.all(answers);
    assert.deepEqual([good, (fenced as { kind: string }).kind, bad], [{ kind: "committed" }, "fenced", refused]);
    assert.deepEqual(heard, ["good"]);
    const lost = commit("lost").catch((error: Error) => error.message);
    await turn();
    writer.groups[1]?.fail(new Error("the connection broke"));
    assert.equal(await lost, "the connection broke");
    await queue.drained();
  });

  test("returns a commit that has not started for too long, and only that", async () => {
    const writer = new HeldWriter();
    const queue = queueOn([writer], { longest_wait_ms: 1000 });
    const begun = queue.commit(batch("begun"), () => {});
    await turn();
    const waiting = queue.commit(batch("waiting"), () => {});
    await assert.rejects(waiting, { code: "store_unavailable" });
    writer.groups[0]?.end();
    assert.deepEqual(await begun, { kind: "committed" });
    await queue.drained();
    assert.deepEqual(writer.names, [["begun"]]);
  });

  test("is drained once the commits so far are answered, although others keep it busy", async () => {
    const writer = new HeldWriter();
    const queue = queueOn([writer]);
    void queue.commit(batch("first"), () => {});
    await turn();
    void queue.commit(batch("second"), () => {});
    let isDrained = false;
    const drained = queue.drained().then(() => (isDrained = true));
    for (const [at, name] of ["third", "fourth"].entries()) {
      assert.equal(isDrained, false);
      void queue.commit(batch(name), () => {});
      writer.groups[at]?.end();
      await turn();
    }
    await drained;
    assert.deepEqual(writer.names, [["first"], ["second", "third"], ["fourth"]], "one is still being written");
    writer.groups[2]?.end();
    await queue.drained();
  });

  test("writes what concerns the same session in order and never concurrently, whatever arrives", async (t) => {
    const random = reportedRandom(t, "EVERSTEP_QUEUE_SEED");
    const underWay = new Map<string, number>();
    const written: Batch[] = [];
    const writer: GroupWriter<Batch, null> = {
      async write(batches) {
        assert.equal(new Set(batches.map(({ kind }) => kind)).size, 1, "COMMIT-1");
        const keys = batches.flatMap((each) => each.keys);
        assert.equal(new Set(keys).size, keys.length, "no key twice in a group");
        const scopes = new Set(batches.flatMap((each) => each.scopes));
        for (const scope of scopes) {
          assert.equal(underWay.get(scope) ?? 0, 0, "COMMIT-2");
          underWay.set(scope, 1);
        }
        for (let turns = random.integer(4); turns > 0; turns -= 1) await turn();
        written.push(...batches);
        for (const scope of scopes) underWay.delete(scope);
        return batches.map(() => COMMITTED);
      },
    };
    const queue = queueOn([writer, writer, writer], {
      most: { batches: 5, characters: 40 },
      isWorthGroup: (waiting) => waiting > 3,
    });
    const submissions: Batch[] = [];
    const answers: Promise<unknown>[] = [];
    for (let number = 0; number < 2000; number += 1) {
      const scopes = Array.from({ length: 1 + random.integer(2) }, () => `session ${random.integer(12)}`);
      const next = batch(String(number), {
        kind: random.integer(3) === 0 ? "rows" : "step",
        scopes: [...new Set(scopes)],
        characters: 1 + random.integer(20),
      });
      submissions.push(next);
      answers.push(queue.commit(next, () => {}));
      if (random.integer(3) === 0) await turn();
    }
    await Promise.all(answers);
    assert.equal(written.length, submissions.length);
    const orderOf = (batches: Batch[], scope: string): string[] =>
      batches.filter(({ scopes }) => scopes.includes(scope)).map(({ name }) => name);
    for (let at = 0; at < 12; at += 1)
      assert.deepEqual(orderOf(written, `session ${at}`), orderOf(submissions, `session ${at}`), "COMMIT-2");
  });
});
