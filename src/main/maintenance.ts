import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { durationOf } from "../domain/duration.ts";
import { EverstepError } from "../domain/errors.ts";
import { type Choice, copyStore, everySession, type StoreSums, sumStore } from "../store/copy-store.ts";
import { replaceStoreFolder } from "../store/embedded/data-folder.ts";
import { describeStore, openStore } from "../store/open-store.ts";
import type { Pruned, Store } from "../store/store.ts";
import { readConfig } from "./config.ts";

/** Copies everything from one store to another, then reads both to verify that they are equal. */
export async function migrateStore(from: string, to: string): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const source = await opened(from, resources);
  await requireAlone(source, from);
  const target = await opened(to, resources);
  await requireAlone(target, to);
  const copied = await copyStore(source, target);
  const sums = await sumStore(target);
  requireSame(copied, sums);
  for (const [table, { rows, checksum }] of Object.entries(sums))
    console.log(`${table.padEnd(14)} ${String(rows).padStart(10)}  ${checksum}`);
  console.log("everything was copied and compared; the source is unchanged");
}

/** Deletes what ended long ago. */
export async function prune(olderThan: string, only?: string): Promise<void> {
  const url = only ?? readConfig(process.env).EVERSTEP_STORE;
  const before = new Date(Date.now() - durationOf(olderThan, "--older-than")).toISOString();
  const folder = folderIn(url);
  const pruned = folder === null ? await pruneShared(url, before) : await pruneFolder(folder, before);
  console.log(`deleted ${pruned.sessions} sessions and ${pruned.conversations} conversations`);
}

async function pruneShared(url: string, before: string): Promise<Pruned> {
  await using resources = new AsyncDisposableStack();
  const store = await opened(url, resources);
  return (await store.prune?.(before)) ?? { sessions: 0, conversations: 0 };
}

/**
 * The embedded store's history is append-only, so the rest is copied beside it and then replaces it. Until then nothing is
 * touched; the old folder is deleted last.
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

/** The recent sessions and conversations, and the ancestors of recent forks. */
async function recent(store: Store, before: string): Promise<{ choice: Choice; pruned: Pruned }> {
  const oldSessions = new Map<string, string | null>();
  const recentSessions = new Map<string, string | null>();
  const activeConversations = new Set<string>();
  for await (const { session_id, parent_session_id, status, ended_at, conversation_id } of everySession(store)) {
    const isOld = (status === "done" || status === "stopped") && ended_at !== null && ended_at < before;
    (isOld ? oldSessions : recentSessions).set(session_id, parent_session_id);
    if (!isOld && conversation_id !== null) activeConversations.add(conversation_id);
  }
  for (let parents = [...recentSessions.values()]; parents.length > 0; ) {
    const needed = parents.filter((id) => id !== null && oldSessions.has(id)) as string[];
    parents = needed.map((id) => oldSessions.get(id) ?? null);
    for (const id of needed) oldSessions.delete(id);
  }
  const old = new Set<string>();
  for (let offset = 0; ; offset += PAGE) {
    const page = await store.listConversations({ status: "archived", limit: PAGE, offset });
    for (const { conversation_id, created_at } of page) {
      const messages = await store.listMessages({ conversation_id, since: before, limit: 1, offset: 0 });
      if (created_at < before && messages.length === 0 && !activeConversations.has(conversation_id))
        old.add(conversation_id);
    }
    if (page.length < PAGE) break;
  }
  return {
    choice: { session: ({ session_id }) => !oldSessions.has(session_id), conversation: (id) => !old.has(id) },
    pruned: { sessions: oldSessions.size, conversations: old.size },
  };
}
const PAGE = 500;

/** The data folder of an embedded store. */
const folderIn = (url: string): string | null => /^lancedb:(.+)$/.exec(url)?.[1] ?? null;

async function opened(url: string, resources: AsyncDisposableStack): Promise<Store> {
  const store = await openStore(url, { notice: (text) => console.log(text) });
  resources.defer(() => store.close());
  if ((await store.volumes.list()).length > 0) {
    const { VolumeFiles } = await import("../archive/volume-files.ts");
    store.volumes.attach(new VolumeFiles(folderIn(url)));
  }
  return store;
}

/** Rows that change during the copy would be inconsistent. */
async function requireAlone(store: Store, url: string): Promise<void> {
  const others = ((await store.listWorkers?.()) ?? []).filter(({ name }) => !name.includes(`:${process.pid}:`));
  if (others.length === 0) return;
  throw new EverstepError(
    "store_locked",
    `${others.length} other processes use ${describeStore(url)} (${others.map(({ name }) => name).join(", ")})`,
    "stop them first",
  );
}

function requireSame(copied: StoreSums, target: StoreSums): void {
  for (const [table, sum] of Object.entries(copied)) {
    const other = target[table as keyof StoreSums];
    if (sum.rows === other.rows && sum.checksum === other.checksum) continue;
    throw new EverstepError(
      "store_corrupt",
      `${table} differ: ${sum.rows} rows with checksum ${sum.checksum} were copied, ${other.rows} with ${other.checksum} found`,
      "the source is unchanged; empty the target and try again",
    );
  }
}
