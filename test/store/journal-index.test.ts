import assert from "node:assert/strict";
import { test } from "node:test";
import { type Entry, JournalIndex } from "../../src/store/embedded/journal-index.ts";
import { randomFor } from "./random.ts";

const OWNERS = ["a", "b", "c", "d"];

/** As simple as can be: the entries themselves, looked through for each question. */
class SlowIndex {
  entries: Entry[] = [];
  kept = 0;

  of(at: number, id: string): number[] {
    return this.entries.filter(({ ids }) => ids[at] === id).map(({ pos }) => pos);
  }

  within(after: number, upTo: number): Entry[] {
    return this.entries.filter(({ pos }) => pos > after && pos <= upTo);
  }
}

test("whatever is added, rolled back and removed, rows are found by each of their ids and by position", (t) => {
  const random = randomFor(t);
  const index = new JournalIndex("conversation_messages");
  const expected = new SlowIndex();
  let position = 0;
  for (let turn = 0; turn < 3_000; turn += 1) {
    const change = random.below(10);
    if (change < 6) {
      position += 1 + random.below(3);
      const entry = { pos: position, ids: [`message-${position}`, random.pick(OWNERS)], sum: random.below(2 ** 31) };
      index.add(entry);
      expected.entries.push(entry);
    } else if (change === 6) {
      index.undo();
      expected.entries.length = expected.kept;
    } else {
      index.keep();
      expected.kept = expected.entries.length;
    }
    if (turn % 40 === 39) {
      index.keep();
      const [after, upTo] = [random.below(position), random.below(position)].sort((a, b) => a - b) as [number, number];
      const end = index.nextEnd(after, upTo, 10);
      const next = expected.within(after, upTo).slice(0, 10);
      assert.equal(end, next.at(-1)?.pos ?? null);
      const but = new Set(next.filter(() => random.chance(0.3)).map(({ pos }) => pos));
      index.remove(after, end ?? after, but);
      expected.entries = expected.entries.filter((entry) => !next.includes(entry) || but.has(entry.pos));
      expected.kept = expected.entries.length;
      for (const { ids } of next)
        assert.deepEqual(index.of("message_id", ids[0] as string), expected.of(0, ids[0] as string));
    }
    for (const owner of OWNERS) assert.deepEqual(index.of("conversation_id", owner), expected.of(1, owner));
    const from = random.below(position + 1);
    assert.deepEqual(index.entries(from, position), expected.within(from, position));
  }
  assert.deepEqual(index.of("message_id", "another"), []);
});
