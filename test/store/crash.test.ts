import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "@lancedb/lancedb";
import type { Tuning } from "../../src/store/embedded/embedded-store.ts";
import type { Store } from "../../src/store/store.ts";
import { repetitions } from "../repetitions.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { type SeededRandom, seededRandom, seedFrom } from "./seeded-random.ts";
import { LANES as FEW_LANES, openStore, writeCommits } from "./store-folder.ts";
import { type Acknowledged, acknowledge, type ReadHistory, verifyHistory } from "./verify-history.ts";
import { startWriter, type Upkeep, type Writer } from "./writer-process.ts";

const ROUNDS = repetitions("EVERSTEP_CRASH_ROUNDS", { few: 6, many: 54 });
const LANES = 12;

/** When a round's writer is killed, and what it does until then. */
type Round = {
  name: string;
  pace_ms: number;
  tuning: Partial<Tuning>;
  constantly: Upkeep[];
  moment: (writer: Writer) => Promise<void>;
};

const EAGER: Partial<Tuning> = { move_after_rows: 20, move_after_ms: 15, compact_after_fragments: 3 };
const CALM = { pace_ms: 30, tuning: EAGER, constantly: [] };

function chooseRound(round: number, random: SeededRandom): Round {
  const wait = random.integer(400);
  const jitter = random.integer(40);
  const many = 1 + random.integer(3);
  switch (round % 6) {
    case 0:
      return { ...CALM, name: "while it starts", moment: async () => await pause(100 + wait) };
    case 1:
      // As fast as possible, so that most kills hit a commit on its way to the disk.
      return { ...CALM, name: "while it commits", pace_ms: 0, tuning: {}, moment: acknowledgedThen(jitter * 3) };
    case 2:
      return { ...CALM, name: "while rows are moved", moment: acknowledgedThen(wait) };
    case 3:
      return { ...CALM, name: "while it commits and rows are moved", pace_ms: 0, moment: acknowledgedThen(jitter * 3) };
    case 4:
      return {
        ...CALM,
        name: "in a checkpoint",
        tuning: {},
        constantly: ["checkpoint"],
        moment: started(many, jitter),
      };
    default:
      return { ...CALM, name: "in a compaction", constantly: ["compact"], moment: started(many, jitter) };
  }
}

const acknowledgedThen =
  (wait: number) =>
  async (writer: Writer): Promise<void> => {
    await writer.reported((report) => report.kind === "acknowledged");
    await pause(wait);
  };

const started =
  (times: number, wait: number) =>
  async (writer: Writer): Promise<void> => {
    let left = times;
    await writer.reported((report) => report.kind === "started" && --left === 0);
    await pause(wait);
  };

async function killAt(moment: Round["moment"], writer: Writer): Promise<void> {
  try {
    await moment(writer);
  } finally {
    await writer.kill();
  }
}

describe("the embedded store under SIGKILL", () => {
  test("tells whoever claims a session that its last owner was killed, until the folder is closed", async () => {
    await using folder = await scratchFolder();
    const writer = startWriter({ folder: folder.path, lanes: FEW_LANES, ...CALM }, new Map());
    await killAt(acknowledgedThen(0), writer);
    const claimAll = async (): Promise<boolean[]> => {
      await using store = await openStore(folder.path);
      const claimed = await store.claimSessions({ worker: "worker-1", limit: 100 });
      return claimed.map(({ after_crash }) => after_crash);
    };
    const afterKill = await claimAll();
    assert.notEqual(afterKill.length, 0);
    assert.deepEqual(new Set(afterKill), new Set([true]));
    assert.deepEqual(new Set(await claimAll()), new Set([false]));
  });

  test(`loses, duplicates and splits nothing in ${ROUNDS} kills on one folder`, async (t) => {
    const seed = seedFrom("EVERSTEP_CRASH_SEED");
    t.diagnostic(`EVERSTEP_CRASH_SEED=${seed}`);
    const random = seededRandom(seed);
    await using folder = await scratchFolder();
    const acknowledged: Acknowledged = new Map();
    const settled = new Set<string>();

    for (let round = 0; round < ROUNDS; round += 1) {
      const { name, moment, ...rest } = chooseRound(round, random);
      try {
        await killAt(moment, startWriter({ folder: folder.path, lanes: LANES, ...rest }, acknowledged));
        // Two of three kills hit a folder as the previous kill left it.
        if (round % 3 !== 2) continue;
        await using store = await openStore(folder.path);
        await verifyHistory(store, { lanes: LANES, acknowledged, settled });
      } catch (error) {
        throw new Error(`seed ${seed}, round ${round}, killed ${name}`, { cause: error });
      }
    }

    const order = { folder: folder.path, lanes: LANES, ...CALM };
    const writer = startWriter(order, acknowledged);
    await acknowledgedThen(300)(writer);
    await writer.finish();
    const history = await verifyAll(folder.path, acknowledged);
    t.diagnostic(`${history.commits.size} commits, ${history.steps} steps, ${history.messages} messages`);
    assert.ok(history.steps > ROUNDS * 10, `only ${history.steps} steps were written`);
    await verifyTables(folder.path, history);
  });
});

async function verifyAll(folder: string, acknowledged: Acknowledged): Promise<ReadHistory> {
  await using store = await openStore(folder);
  await verifyHistory(store, { lanes: LANES, acknowledged });
  await store.checkpoint();
  const { backlog } = await store.stats();
  assert.equal(backlog, 0, "a checkpoint moves every final row");
  await store.compact();
  return await verifyHistory(store, { lanes: LANES, acknowledged });
}

/** The port could hide a duplicate row of a table, so the tables are read directly. */
async function verifyTables(folder: string, history: ReadHistory): Promise<void> {
  const database = await connect(folder);
  const count = async (table: string): Promise<number> => await (await database.openTable(table)).countRows();
  assert.equal(await count("agent_steps"), history.steps, "rows of agent_steps");
  assert.equal(await count("conversation_messages"), history.messages, "rows of conversation_messages");
  assert.equal(await count("agent_state"), history.sessions, "rows of agent_state");
  assert.equal(await count("conversations"), history.sessions, "rows of conversations");
  assert.equal(await count("conversation_participants"), history.sessions, "rows of conversation_participants");
  database.close();
}

describe("the check of a history", () => {
  test("notices a step, a message and an action that is lost or duplicated, and a partial commit", async () => {
    await using folder = await scratchFolder();
    await using store = await openStore(folder.path);
    const acknowledged = await writeCommits(store, 40);
    const verify = async (broken: Partial<Store>): Promise<ReadHistory> =>
      await verifyHistory(overridden(store, broken), { lanes: FEW_LANES, acknowledged });
    await verify({});

    const last = <Row>(rows: Row[]): Row[] => rows.slice(-1);
    await assert.rejects(
      verify({ listSteps: async (filter) => (await store.listSteps(filter)).slice(0, -1) }),
      /last step/,
    );
    await assert.rejects(
      verify({ listSteps: async (filter) => (await store.listSteps(filter)).toSpliced(2, 1) }),
      /gap/,
    );
    const doubledSteps: Store["listSteps"] = async (filter) => {
      const steps = await store.listSteps(filter);
      return [...steps, ...last(steps)];
    };
    await assert.rejects(verify({ listSteps: doubledSteps }), /repeat/);
    const wrongState: Store["listSteps"] = async (filter) =>
      (await store.listSteps(filter)).map((step) => ({ ...step, state: { ...step.state, n: -1 } }));
    await assert.rejects(verify({ listSteps: wrongState }), /state/);
    await assert.rejects(
      verify({ listMessages: async (filter) => (await store.listMessages(filter)).slice(1) }),
      /message/,
    );
    const doubledMessages: Store["listMessages"] = async (filter) => {
      const messages = await store.listMessages(filter);
      return [...messages, ...last(messages)];
    };
    await assert.rejects(verify({ listMessages: doubledMessages }), /each message once/);
    await assert.rejects(verify({ listActions: async () => [] }), /receipt/);
    const unconsumed: Store["listActions"] = async (filter) =>
      (await store.listActions(filter)).map((action) => ({ ...action, receipt: "delivered" }));
    await assert.rejects(verify({ listActions: unconsumed }), /receipt/);
  });

  test("notices an acknowledged commit that is missing, or comes from another attempt", async () => {
    await using folder = await scratchFolder();
    await using store = await openStore(folder.path);
    const written = await writeCommits(store, 10);
    const session_id = [...written.keys()][0] ?? "";
    const missing = structuredClone(written);
    acknowledge(missing, { session_id, key: "step of the future", name: "any" });
    await assert.rejects(
      verifyHistory(store, { lanes: FEW_LANES, acknowledged: missing }),
      /lost: the step of the future/,
    );
    const unknown: Acknowledged = new Map([...written, ["a session", new Map([["creation of a session", "any"]])]]);
    await assert.rejects(verifyHistory(store, { lanes: FEW_LANES, acknowledged: unknown }), /lost: the creation/);
    const other = structuredClone(written);
    for (const key of other.get(session_id)?.keys() ?? []) acknowledge(other, { session_id, key, name: "another" });
    await assert.rejects(verifyHistory(store, { lanes: FEW_LANES, acknowledged: other }), /not from the attempt/);
  });
});

/** The store with some of its reads replaced; the others still run on the store itself. */
function overridden(store: Store, overrides: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const own: unknown = Reflect.get(overrides, name) ?? Reflect.get(target, name);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}
