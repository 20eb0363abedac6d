import assert from "node:assert/strict";
import type { Page } from "../../../src/store/store.ts";

/** Reads a list with every kind of paging and compares it with the expected rows, in order. */
export async function assertPages<Row>(
  list: (page: Page) => Promise<Row[]>,
  expected: Row[],
  what = "",
): Promise<void> {
  const { length } = expected;
  assert.deepEqual(await list({ limit: 500, offset: 0 }), expected.slice(0, 500), `${what} whole`);
  const edges: Page[] = [
    { limit: 1, offset: 0 },
    { limit: 1, offset: Math.max(0, length - 1) },
    { limit: 1, offset: length },
    { limit: 500, offset: length },
    { limit: 500, offset: length + 1_000 },
    { limit: 500, offset: Math.max(0, length - 1) },
    { limit: length + 1, offset: 0 },
  ];
  for (const page of edges) {
    const slice = expected.slice(page.offset, page.offset + page.limit);
    assert.deepEqual(await list(page), slice, `${what} limit ${page.limit}, offset ${page.offset}`);
  }
  await assertJoined(list, expected, Math.max(1, Math.ceil(length / 4)), what);
}

/** Consecutive pages of one size add up to the whole list. */
export async function assertJoined<Row>(
  list: (page: Page) => Promise<Row[]>,
  expected: Row[],
  limit: number,
  what = "",
): Promise<void> {
  const joined: Row[] = [];
  for (let offset = 0; ; offset += limit) {
    const page = await list({ limit, offset });
    joined.push(...page);
    if (page.length < limit) break;
  }
  assert.deepEqual(joined, expected, `${what} in pages of ${limit}`);
}
