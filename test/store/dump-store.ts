import { createHash } from "node:crypto";
import { canonicalJson } from "../../src/store/copy-store.ts";
import type { Page, Store } from "../../src/store/store.ts";

type Row = Record<string, unknown>;
/** Every row that is visible through the port, by table. */
export type Dump = Record<string, Row[]>;

const PAGE = 200;

export async function dumpStore(store: Store): Promise<Dump> {
  const sessions = await everyRow((page) => store.listSessions(page));
  const conversations = await everyRow((page) => store.listConversations(page));
  const dump: Dump = {
    sessions,
    conversations,
    actions: await everyRow((page) => store.listActions(page)),
    agent_configs: await everyRow((page) => store.listAgentConfigs(page)),
    steps: [],
    cursors: [],
    messages: [],
    participants: [],
  };
  for (const { session_id } of sessions) {
    dump["steps"]?.push(...(await everyRow((page) => store.listSteps({ session_id, ...page }))));
    for (const { conversation_id } of conversations) {
      const cursor = await store.getCursor({ session_id, conversation_id });
      if (cursor) dump["cursors"]?.push(cursor);
    }
  }
  for (const { conversation_id } of conversations) {
    dump["messages"]?.push(...(await everyRow((page) => store.listMessages({ conversation_id, ...page }))));
    dump["participants"]?.push(...(await store.listParticipants(conversation_id)));
  }
  return dump;
}

/** A checksum over the rows of a table, in order. */
export const checksumOf = (rows: Row[]): string =>
  createHash("sha256")
    .update(rows.map((row) => canonicalJson(row)).join("\n"))
    .digest("hex");

async function everyRow<Kind>(read: (page: Page) => Promise<Kind[]>): Promise<Kind[]> {
  const rows: Kind[] = [];
  for (;;) {
    const page = await read({ limit: PAGE, offset: rows.length });
    rows.push(...page);
    if (page.length < PAGE) return rows;
  }
}
