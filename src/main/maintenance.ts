import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { EverstepError } from "../domain/errors.ts";
import { type Choice, copyStore, everySession, type StoreSums, sumStore } from "../store/copy-store.ts";
import { replaceStoreFolder } from "../store/embedded/durable-files.ts";
import { describeStore, openStore } from "../store/open-store.ts";
import type { Pruned, Store } from "../store/store.ts";
import { readConfig } from "./config.ts";

const UNITS = { h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Moves everything from one store to another, and reads both again to see that they hold the same. */
export async function migrateStore(from: string, to: string): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const source = await opened(from, resources);
  await requireAlone(source, from);
  const target = await opened(to, resources);
  await requireAlone(target, to);
  const copied = await copyStore(source, target);
  const found = await sumStore(target);
  requireSame(copied, found);
  for (const [table, { rows, checksum }] of Object.entries(found))
    console.log(`${table.padEnd(14)} ${String(rows).padStart(10)}  ${checksum}`);
  console.log("everything was copied and compared; the source is as it was");
}

/** Deletes what ended long ago. */
export async function prune(olderThan: string, only?: string): Promise<void> {
  const url = only ?? readConfig(process.env).EVERSTEP_STORE;
  const before = new Date(Date.now() - duration(olderThan)).toISOString();
  const folder = /^lancedb:(.+)$/.exec(url)?.[1];
  const pruned = folder === undefined ? await pruneShared(url, before) : await pruneFolder(folder, before);
  console.log(`deleted ${pruned.sessions} sessions and ${pruned.conversations} conversations`);
}

async function pruneShared(url: string, before: string): Promise<Pruned> {
  await using resources = new AsyncDisposableStack();
  const store = await opened(url, resources);
  return (await store.prune?.(before)) ?? { sessions: 0, conversations: 0 };
}

/**
 * The embedded store only ever adds to its history, so what is to stay is copied beside it and takes its place. Until then
 * nothing of it is touched; the old folder goes last.
 */
async function pruneFolder(folder: string, before: string): Promise<Pruned> {
  const fresh = `${resolve(folder)}.pruned`;
  await rm(fresh, { recursive: true, force: true });
  const pruned = await copyRecent(`lancedb:${folder}`, `lancedb:${fresh}`, before);
  await replaceStoreFolder(folder, fresh);
  return pruned;
}

async function copyRecent(from: string, to: string, before: string): Promise<Pruned> {
  await using resources = new AsyncDisposableStack();
  const [source, target] = [await opened(from, resources), await opened(to, resources)];
  const { choice, pruned } = await recent(source, before);
  requireSame(await copyStore(source, target, choice), await sumStore(target));
  return pruned;
}

/** What is not old, and what those who are not old were taken from. */
async function recent(store: Store, before: string): Promise<{ choice: Choice; pruned: Pruned }> {
  const dropped = new Map<string, string | null>();
  const kept = new Map<string, string | null>();
  const talks = new Set<string>();
  for await (const { session_id, parent_session_id, status, ended_at, conversation_id } of everySession(store)) {
    const isOld = (status === "done" || status === "stopped") && ended_at !== null && ended_at < before;
    (isOld ? dropped : kept).set(session_id, parent_session_id);
    if (!isOld && conversation_id !== null) talks.add(conversation_id);
  }
  for (let parents = [...kept.values()]; parents.length > 0; ) {
    const needed = parents.filter((id) => id !== null && dropped.has(id)) as string[];
    parents = needed.map((id) => dropped.get(id) ?? null);
    for (const id of needed) dropped.delete(id);
  }
  const old = new Set<string>();
  for (let offset = 0; ; offset += PAGE) {
    const page = await store.listConversations({ status: "archived", limit: PAGE, offset });
    for (const { conversation_id, created_at } of page) {
      const said = await store.listMessages({ conversation_id, since: before, limit: 1, offset: 0 });
      if (created_at < before && said.length === 0 && !talks.has(conversation_id)) old.add(conversation_id);
    }
    if (page.length < PAGE) break;
  }
  return {
    choice: { session: ({ session_id }) => !dropped.has(session_id), conversation: (id) => !old.has(id) },
    pruned: { sessions: dropped.size, conversations: old.size },
  };
}
const PAGE = 500;

function duration(text: string): number {
  const [, count, unit] = /^(\d+)([hdw])$/.exec(text) ?? [];
  if (count !== undefined) return Number(count) * UNITS[unit as keyof typeof UNITS];
  throw new EverstepError(
    "config_invalid",
    `--older-than ${text} is no duration`,
    "use hours, days or weeks: 12h, 30d, 8w",
  );
}

async function opened(url: string, resources: AsyncDisposableStack): Promise<Store> {
  const store = await openStore(url, { notice: (text) => console.log(text) });
  resources.defer(() => store.close());
  return store;
}

/** Rows that change meanwhile would be copied half. */
async function requireAlone(store: Store, url: string): Promise<void> {
  const others = ((await store.listWorkers?.()) ?? []).filter(({ name }) => !name.includes(`:${process.pid}:`));
  if (others.length === 0) return;
  throw new EverstepError(
    "store_locked",
    `${others.length} other processes use ${describeStore(url)} (${others.map(({ name }) => name).join(", ")})`,
    "stop them first",
  );
}

function requireSame(copied: StoreSums, found: StoreSums): void {
  for (const [table, sum] of Object.entries(copied)) {
    const other = found[table as keyof StoreSums];
    if (sum.rows === other.rows && sum.checksum === other.checksum) continue;
    throw new EverstepError(
      "store_corrupt",
      `${table} differ: ${sum.rows} rows with checksum ${sum.checksum} were copied, ${other.rows} with ${other.checksum} found`,
      "the source was not touched; empty the target and try again",
    );
  }
}
