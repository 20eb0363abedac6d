import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import type { Operation } from "../../src/archive/archives.ts";
import { VolumeFiles } from "../../src/archive/volume-files.ts";
import { checkFolder } from "../../src/store/embedded/check-folder.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { repetitions } from "../repetitions.ts";
import { grow } from "../store/conformance/steps.ts";
import { ended } from "../store/conformance/volumes.ts";
import { aConversation, aMessage, aSession, mustCommit, mustCreate } from "../store/fixtures.ts";
import { type ArchiveOrder, type History, readHistory } from "./archive-history.ts";

const PROCESS = new URL("./archive-process.ts", import.meta.url).pathname;
const ARCHIVE: Operation = { kind: "archive", older_than_ms: -86_400_000, dry_run: false };
const DROP: Operation = { ...ARCHIVE, kind: "drop" };
const KILLS = repetitions("EVERSTEP_TEST_ARCHIVE_KILLS", { few: 1, many: 20 });

/** `data`: the folder of an embedded store. */
type Place = { url: string; folder: string; data: string | null };
/** The sessions and the conversation that a job is about. */
type Subject = { ids: string[]; conversation_id: string };
type Run = { place: Place; subject: Subject; job: Operation; at?: number; after_ms?: number };
/** `history`: what the process read before it began, which is what the one before it left. */
type Ran = { is_killed: boolean; history: History };

async function ran({ place, subject, job, at, after_ms }: Run): Promise<Ran> {
  const order: ArchiveOrder = { ...place, ...subject, job, at: at ?? null, after_ms: after_ms ?? null };
  const child = spawn(process.execPath, [PROCESS, JSON.stringify(order)], { stdio: ["ignore", "pipe", "inherit"] });
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  const is_killed = signal === "SIGKILL";
  if (!is_killed) assert.equal(code, 0);
  return { is_killed, history: JSON.parse(said) as History };
}

async function withStore<Result>({ url }: Place, work: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await openStore(url);
  try {
    store.volumes.attach(new VolumeFiles(null));
    return await work(store);
  } finally {
    await store.close();
  }
}

const historyIn = (place: Place, subject: Subject): Promise<History> =>
  withStore(place, (store) => readHistory(store, subject));

async function fill(place: Place): Promise<Subject> {
  return withStore(place, async (store) => {
    const conversation = aConversation();
    const { conversation_id } = conversation;
    await mustCommit(store, { conversations: [{ kind: "create", conversation }] });
    await mustCommit(store, { messages: [aMessage({ conversation_id })] });
    const ids: string[] = [];
    for (const failing of [[], [1, 1, 4], [0]]) {
      const { owned } = await grow(store, await mustCreate(store, aSession({ conversation_id })), 8, failing);
      ids.push((await ended(store, owned)).session_id);
    }
    return { ids, conversation_id };
  });
}

type Killing = {
  place: Place;
  subject: Subject;
  job: Operation;
  /** Must hold of what each process finds. */
  check: (history: History) => Promise<void>;
  redo: () => Promise<void>;
};

/** Kills a job before each call that it makes, then at any time, then lets it end. */
async function killed({ place, subject, job, check, redo }: Killing): Promise<number> {
  let kills = 0;
  const run = async (when: Pick<Run, "at" | "after_ms">): Promise<boolean> => {
    const { is_killed, history } = await ran({ place, subject, job, ...when });
    if (is_killed) kills += 1;
    await check(history);
    return is_killed;
  };
  for (let at = 0; await run({ at }); at++);
  for (let round = 0; round < KILLS; round++) {
    await check(await historyIn(place, subject));
    await redo();
    await run({ after_ms: Math.random() * 400 });
  }
  assert.equal(await run({}), false);
  await check(await historyIn(place, subject));
  return kills;
}

/** SIGKILL at every stage of archiving, restoring and dropping neither loses nor duplicates anything. */
export async function survivesKills(place: Place, t: TestContext): Promise<void> {
  const subject = await fill(place);
  const before = await historyIn(place, subject);
  const same = async (history: History): Promise<void> => {
    assert.deepEqual(history, before);
    if (place.data !== null) assert.deepEqual((await checkFolder(place.data)).problems, []);
  };
  const restore: Operation = { kind: "restore", session_ids: subject.ids };
  const run = async (job: Operation): Promise<void> => {
    const { is_killed, history } = await ran({ place, subject, job });
    assert.equal(is_killed, false);
    await same(history);
  };
  const both = { place, subject, check: same };
  const archiving = await killed({ ...both, job: ARCHIVE, redo: () => run(restore) });
  const restoring = await killed({ ...both, job: restore, redo: () => run(ARCHIVE) });
  await run(ARCHIVE);
  const dropping = await killed({
    place,
    subject,
    job: DROP,
    async check({ steps, messages }) {
      for (const [at, left] of steps.entries()) if (left.length > 0) assert.deepEqual(left, before.steps[at]);
      if (messages.length > 0) assert.deepEqual(messages, before.messages);
    },
    redo: async () => {},
  });
  assert.deepEqual(await historyIn(place, subject), { steps: [[], [], []], messages: [] });
  t.diagnostic(`killed ${archiving} times while archiving, ${restoring} while restoring, ${dropping} while dropping`);
  assert.ok(archiving > 10 && restoring > 5 && dropping > 3);
}
