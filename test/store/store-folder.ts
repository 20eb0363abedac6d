import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { type ErrorCode, EverstepError } from "../../src/domain/errors.ts";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { ThreadTuning } from "../../src/store/embedded/thread-channel.ts";
import type { Store } from "../../src/store/store.ts";
import { writeHistory } from "./lane-writer.ts";
import { type Acknowledged, acknowledge, type ReadHistory, verifyHistory } from "./verify-history.ts";
import { startWriter } from "./writer-process.ts";

/** Lanes of the histories that tests write. */
export const LANES = 3;

/** The store of a folder, closed with its scope. */
export async function openStore(
  folder: string,
  tuning: ThreadTuning = {},
  notice: (text: string) => void = () => {},
): Promise<EmbeddedStore & AsyncDisposable> {
  const store = await openEmbeddedStore({ folder, tuning, notice });
  return Object.assign(store, { [Symbol.asyncDispose]: async () => await store.close() });
}

/** Continues the store's history by at least this many commits. */
export async function writeCommits(
  store: Store,
  commits: number,
  acknowledged: Acknowledged = new Map(),
): Promise<Acknowledged> {
  const enough = new AbortController();
  let left = commits;
  await writeHistory(store, {
    lanes: LANES,
    pace_ms: 0,
    signal: enough.signal,
    acknowledge: (attempt) => {
      acknowledge(acknowledged, attempt);
      if (--left === 0) enough.abort();
    },
  });
  return acknowledged;
}

/** A folder whose store was used and closed: half of its history is in LanceDB, the rest in the journal. */
export async function fillFolder(folder: string, commits = 120): Promise<Acknowledged> {
  await using store = await openStore(folder);
  const acknowledged = await writeCommits(store, commits / 2);
  await store.checkpoint();
  return await writeCommits(store, commits / 2, acknowledged);
}

/** Continues a folder's history by this many commits, which are only in the journal's log, and kills the writer. */
export async function writeAndKill(folder: string, acknowledged: Acknowledged, commits: number): Promise<void> {
  const order = { folder, lanes: LANES, pace_ms: 0, tuning: {}, constantly: [] };
  const writer = startWriter(order, acknowledged);
  let left = commits;
  await writer.reported((report) => report.kind === "acknowledged" && --left === 0);
  await writer.kill();
}

export async function verifyFolder(folder: string, acknowledged: Acknowledged): Promise<ReadHistory> {
  await using store = await openStore(folder);
  return await verifyHistory(store, { lanes: LANES, acknowledged });
}

export type Fingerprint = ReadonlyMap<string, string>;

/** Every file below the folder that `counts`, with a hash of its content. */
export async function fingerprint(folder: string, counts: (path: string) => boolean): Promise<Fingerprint> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  const hashes = files.filter(counts).map(async (file) => [file, await hashOf(join(folder, file))] as const);
  return new Map(await Promise.all(hashes));
}

/** Throws unless there are the same files with the same content. */
export function assertUnchanged(before: Fingerprint, after: Fingerprint): void {
  const files = new Set([...before.keys(), ...after.keys()]);
  const changed = [...files].filter((file) => before.get(file) !== after.get(file));
  assert.deepEqual(changed, [], "these files changed");
}

const hashOf = async (path: string): Promise<string> =>
  createHash("sha256")
    .update(await readFile(path))
    .digest("hex");

/** Only informs people who holds the folder. */
export const isOwnerNote = (path: string): boolean => path === "owner.pid";
export const isOfTable = (path: string): boolean => path.includes(".lance");
export const isOfJournal = (path: string): boolean => path.startsWith("journal.sqlite");

/** Throws unless it is an error with one of these codes that names a next step. */
export function assertCoded(error: unknown, codes: readonly ErrorCode[]): asserts error is EverstepError {
  assert.ok(
    error instanceof EverstepError,
    `not a coded error: ${error instanceof Error ? error.stack : String(error)}`,
  );
  assert.ok(codes.includes(error.code), `${codes.join(" or ")} expected: ${error.stack}`);
  assert.ok(error.message.startsWith(`${error.code}: `), error.message);
  assert.ok(error.next.length > 10 && error.message.endsWith(error.next), `no next move in ${error.message}`);
}

export async function rejectsWith(promise: Promise<unknown>, ...codes: ErrorCode[]): Promise<EverstepError> {
  const error: unknown = await promise.then(
    () => assert.fail(`${codes.join(" or ")} expected, but it went well`),
    (reason: unknown) => reason,
  );
  assertCoded(error, codes);
  return error;
}

/** For a folder that must not open: closes a store that opens by mistake. */
export async function refusesToOpen(folder: string, ...codes: ErrorCode[]): Promise<EverstepError> {
  const opening = openEmbeddedStore({ folder }).then(async (store) => await store.close());
  return await rejectsWith(opening, ...codes);
}
