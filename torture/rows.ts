import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Action } from "../src/domain/action.ts";
import type { Conversation, Message, Participant } from "../src/domain/conversation.ts";
import type { JsonObject } from "../src/domain/json.ts";
import type { Session } from "../src/domain/session.ts";
import type { Step } from "../src/domain/step.ts";
import { openStore } from "../src/store/open-store.ts";
import { Api, pathOf, SHAPES } from "../test/server/api.ts";
import { readPages } from "../test/store/read-session.ts";

/** All rows; the numerous ones by session or conversation. */
export type Rows = {
  sessions: Map<string, Session>;
  steps: Map<string, Step[]>;
  actions: Map<string, Action>;
  conversations: Map<string, Conversation>;
  participants: Map<string, Participant[]>;
  messages: Map<string, Message[]>;
};

type Reader = {
  sessions(): Promise<Session[]>;
  steps(session_id: string): Promise<Step[]>;
  actions(): Promise<Action[]>;
  conversations(): Promise<Conversation[]>;
  participants(conversation_id: string): Promise<Participant[]>;
  messages(conversation_id: string): Promise<Message[]>;
};

/** The rows as the API shows them. */
export function readOverHttp(url: string): Promise<Rows> {
  const api = new Api(url);
  return read({
    sessions: () => api.all("/api/sessions", "sessions", SHAPES.session),
    steps: (id) => api.steps(id),
    actions: () => api.all("/api/actions", "actions", SHAPES.action),
    conversations: () => api.all("/api/conversations", "conversations", SHAPES.conversation),
    participants: async (id) => {
      const { text } = await api.get(pathOf("conversations", id, "participants"));
      return (JSON.parse(text) as { participants: Participant[] }).participants;
    },
    messages: (id) => api.messages(id),
  });
}

/**
 * The rows in the store after every process has ended. Lists that are the same in `seen` are the same objects: two copies of what
 * half an hour leaves do not fit into memory.
 */
export async function readFromStore(store_url: string, seen: Rows): Promise<Rows> {
  const store = await openStore(store_url);
  const reader: Reader = {
    sessions: () => readPages((page) => store.listSessions(page)),
    steps: (session_id) => readPages((page) => store.listSteps({ session_id, ...page })),
    actions: () => readPages((page) => store.listActions(page)),
    conversations: () => readPages((page) => store.listConversations(page)),
    participants: (id) => store.listParticipants(id),
    messages: (conversation_id) => readPages((page) => store.listMessages({ conversation_id, ...page })),
  };
  try {
    return await read(reader, seen);
  } finally {
    await store.close();
  }
}

async function read(reader: Reader, seen?: Rows): Promise<Rows> {
  const sessions = keyed(
    (await reader.sessions()).map((row) => ({ ...row, context: digested(row.context) })),
    ({ session_id }) => session_id,
  );
  const stepsOf = async (id: string): Promise<Step[]> =>
    (await reader.steps(id)).map((row) => ({ ...row, state: digested(row.state) }));
  const conversations = keyed(await reader.conversations(), ({ conversation_id }) => conversation_id);
  return {
    sessions,
    conversations,
    actions: keyed(await reader.actions(), ({ action_id }) => action_id),
    steps: await each(sessions.keys(), stepsOf, seen?.steps),
    participants: await each(conversations.keys(), (id) => reader.participants(id), seen?.participants),
    messages: await each(conversations.keys(), (id) => reader.messages(id), seen?.messages),
  };
}

/** Replaces a large state's filler by a digest: thousands of them would not fit into memory. */
export function digested(state: JsonObject): JsonObject {
  const { filler, ...rest } = state;
  if (typeof filler !== "string") return state;
  return { ...rest, filler: createHash("sha256").update(filler).digest("hex") };
}

function keyed<Row>(rows: Row[], keyOf: (row: Row) => string): Map<string, Row> {
  const map = new Map(rows.map((row) => [keyOf(row), row]));
  if (map.size !== rows.length) throw new Error(`a list of ${rows.length} rows has only ${map.size} different ones`);
  return map;
}

/** Reads several lists at a time: one after the other took longer than the half hour that had filled them. */
async function each<Row>(
  ids: IterableIterator<string>,
  readList: (id: string) => Promise<Row[]>,
  seen?: Map<string, Row[]>,
): Promise<Map<string, Row[]>> {
  const map = new Map<string, Row[]>();
  const readRest = async (): Promise<void> => {
    for (const id of ids) {
      const [rows, earlier] = [await readList(id), seen?.get(id)];
      map.set(id, earlier && isDeepStrictEqual(earlier, rows) ? earlier : rows);
    }
  };
  await Promise.all(Array.from({ length: 8 }, readRest));
  return map;
}

/** One line for each row that only one side has or that differs. */
export function differences(one: Rows, other: Rows): string[] {
  return (Object.keys(one) as (keyof Rows)[]).flatMap((table) => {
    const [a, b]: Map<string, unknown>[] = [one[table], other[table]];
    const keys = new Set([...(a?.keys() ?? []), ...(b?.keys() ?? [])]);
    const different = [...keys].filter((key) => !isDeepStrictEqual(a?.get(key), b?.get(key)));
    return different.map(
      (key) =>
        `${table} of ${key} over HTTP and in the store differ: ${JSON.stringify(a?.get(key))?.slice(0, 500)} and ${JSON.stringify(b?.get(key))?.slice(0, 500)}`,
    );
  });
}
