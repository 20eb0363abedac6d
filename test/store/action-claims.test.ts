import assert from "node:assert/strict";
import { test } from "node:test";
import type { Action } from "../../src/domain/action.ts";
import { ActionClaims } from "../../src/store/postgres/action-claims.ts";
import { Pool } from "../../src/store/postgres/connections.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { Tables } from "../../src/store/postgres/tables.ts";
import { SCHEMA } from "../../src/store/schema.ts";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { eventually } from "../server/server-fixture.ts";
import { anAction, aSession, mustCommit, mustCreate, WORKER } from "./fixtures.ts";

const MOST = { worker: WORKER, limit: 100 };
const NOTHING_MORE = { numbers: new Map<string, number>(), claimed: new Set<string>(), more: new Set<string>() };

/** Processes that claim from one queue, without the rest of a store: the test notifies them of commits. */
class Scene implements AsyncDisposable {
  readonly #url: string;
  readonly #pool: Pool;
  readonly #remove: () => Promise<void>;
  readonly #processes: ActionClaims[] = [];
  readonly taken = new Map<number, string[]>();
  wakes = 0;

  private constructor(url: string, remove: () => Promise<void>) {
    this.#url = url;
    this.#pool = new Pool(url, 4);
    this.#remove = remove;
  }

  /** With these actions in the queue, whose sessions have no owner. */
  static async open(actions: Action[]): Promise<Scene> {
    const { url, remove } = await postgresHome();
    const store = await openPostgresStore({ url });
    for (const { session_id, action_id, action_type } of new Map(actions.map((one) => [one.session_id, one])).values())
      await mustCreate(
        store,
        aSession({ session_id, ...(action_type === "agent_create" && { created_action_id: action_id }) }),
      );
    await mustCommit(store, { actions });
    await store.releaseSessions({ worker: WORKER });
    await store.close();
    const scene = new Scene(url, remove);
    await scene.run("update queue set claimed_by = null");
    await scene.run("update agent_state set owner = null, node_no = null");
    return scene;
  }

  async process(node_no: number): Promise<ActionClaims> {
    const life = "now() + interval '1 hour', 0";
    await this.run(
      `insert into workers (node_no, name, expires_at, blocked_ms) values (${node_no}, 'p${node_no}', ${life})`,
    );
    const taken: string[] = [];
    this.taken.set(node_no, taken);
    const claims = new ActionClaims(this.#pool, new Tables(SCHEMA), node_no, {
      owns: (session_id) => taken.includes(session_id),
      others: () => this.#processes.length - 1,
      taken: async (_worker, session_ids) => void taken.push(...session_ids),
      wake: () => {
        this.wakes += 1;
      },
    });
    this.#processes.push(claims);
    return claims;
  }

  run(statement: string): Promise<void> {
    return administer(this.#url, statement);
  }

  /** As the statement that writes its outcome does. */
  settle({ action_id }: Action): Promise<void> {
    return this.run(`update queue set processed = true, claimed_by = null where action_id = '${action_id}'`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const claims of this.#processes) claims.stop();
    await this.#pool.close();
    await this.#remove();
  }
}

const idsOf = (actions: Action[]): string[] => actions.map(({ action_id }) => action_id);

await onPostgres(() => {
  test("of a session the most urgent action is handed out, then the oldest, one at a time (CLAIMS-2)", async () => {
    const [old, urgent, young] = [0, 9, 0].map((urgency) => anAction({ session_id: "s", urgency })) as [
      Action,
      Action,
      Action,
    ];
    await using scene = await Scene.open([old, urgent, young]);
    const claims = await scene.process(101);
    const order: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      const [action, more] = await claims.claim(MOST);
      assert.ok(action && !more);
      order.push(action.action_id);
      claims.mayHave(["s"]);
      assert.deepEqual(await claims.claim(MOST), [], "none of a session while one is under way");
      await scene.settle(action);
      claims.committed([{ ...action, processed: true }], { ...NOTHING_MORE, more: new Set(["s"]) });
    }
    assert.deepEqual(order, idsOf([urgent, old, young]));
    assert.deepEqual(scene.taken.get(101), ["s"], "the session is taken with its first action");
  });

  test("processes that claim at once never get the same action, and each owns the sessions of its own (CLAIMS-1)", async () => {
    const actions = Array.from({ length: 60 }, (_, at) => anAction({ session_id: `s${at}` }));
    await using scene = await Scene.open(actions);
    const processes = [await scene.process(101), await scene.process(102), await scene.process(103)];
    const claimed = processes.map(() => [] as Action[]);
    for (let round = 0; round < 40 && claimed.flat().length < actions.length; round += 1)
      await Promise.all(
        processes.map(async (claims, at) => {
          claims.lookThrough();
          claimed[at]?.push(...(await claims.claim({ worker: WORKER, limit: 7 })));
        }),
      );
    assert.deepEqual(idsOf(claimed.flat()).sort(), idsOf(actions).sort());
    for (const [at, own] of claimed.entries())
      assert.deepEqual(own.map(({ session_id }) => session_id).sort(), scene.taken.get(101 + at)?.sort());
  });

  test("a claim whose answer was lost is given back before the next one (CLAIMS-4)", async () => {
    const [other, lost] = [anAction({ session_id: "a" }), anAction({ session_id: "b" })];
    await using scene = await Scene.open([other, lost]);
    const claims = await scene.process(101);
    await scene.run(`update queue set run_at = now() + interval '1 hour' where action_id = '${lost.action_id}'`);
    assert.deepEqual(idsOf(await claims.claim(MOST)), [other.action_id]);
    // The statement succeeded, but its response was lost.
    await scene.run(`update queue set run_at = null, claimed_by = 101 where action_id = '${lost.action_id}'`);
    claims.lookThrough();
    assert.deepEqual(await claims.claim(MOST), [], "it is claimed, for all that anybody knows");
    claims.dropped([]);
    claims.lookThrough();
    assert.deepEqual(idsOf(await claims.claim(MOST)), [lost.action_id], "and what is under way stays so");
  });

  test("a notification that arrives while an action is being handled is kept until it ends (CLAIMS-5)", async () => {
    const [first, second] = [anAction({ session_id: "s" }), anAction({ session_id: "s" })];
    await using scene = await Scene.open([first, second]);
    const claims = await scene.process(101);
    const [action] = await claims.claim(MOST);
    assert.ok(action);
    claims.mayHave(["s"]);
    assert.deepEqual(await claims.claim(MOST), []);
    await scene.settle(action);
    claims.committed([{ ...action, processed: true }], NOTHING_MORE);
    assert.deepEqual(idsOf(await claims.claim(MOST)), [second.action_id], "though the statement saw nothing more");
  });

  test("an action is not handed out early, and then a process is woken", async () => {
    const action = anAction({ session_id: "s" });
    await using scene = await Scene.open([action]);
    const claims = await scene.process(101);
    await scene.run("update queue set run_at = now() + interval '2 seconds'");
    assert.deepEqual(await claims.claim(MOST), []);
    const before = scene.wakes;
    await eventually("it is time", async () => scene.wakes > before);
    assert.deepEqual(idsOf(await claims.claim(MOST)), [action.action_id]);
  });

  test("an action that was claimed as it was written is given back where a more urgent one comes (CLAIMS-6)", async () => {
    const [usual, urgent] = [anAction({ session_id: "s" }), anAction({ session_id: "s", urgency: 9 })];
    await using scene = await Scene.open([usual, urgent]);
    const claims = await scene.process(101);
    await scene.run(`update agent_state set owner = '${WORKER}', node_no = 101`);
    await scene.run(`update queue set claimed_by = 101 where action_id = '${usual.action_id}'`);
    claims.committed([usual], { ...NOTHING_MORE, claimed: new Set([usual.action_id]) });
    claims.committed([urgent], NOTHING_MORE);
    assert.deepEqual(idsOf(await claims.claim(MOST)), [urgent.action_id]);
  });

  test("requests to sessions take turns with those that begin one, however many wait (CLAIMS-3)", async () => {
    const creations = Array.from({ length: 40 }, (_, at) =>
      anAction({ session_id: `new${at}`, action_type: "agent_create" }),
    );
    const pauses = Array.from({ length: 5 }, (_, at) =>
      anAction({ session_id: `old${at}`, action_type: "agent_pause" }),
    );
    await using scene = await Scene.open([...creations, ...pauses]);
    const claims = await scene.process(101);
    const claimed: Action[][] = [];
    for (const limit of [1, 4, ...Array<number>(15).fill(3)]) claimed.push(await claims.claim({ ...MOST, limit }));
    const numbersOf = (actions: Action[], type: string): string[] =>
      actions.flatMap(({ action_type, session_id }) => (action_type === type ? [session_id.slice(3)] : []));
    assert.deepEqual(
      numbersOf(claimed[0] ?? [], "agent_pause"),
      ["0"],
      "the youngest kind comes first where there is room for one",
    );
    assert.deepEqual(numbersOf(claimed[1] ?? [], "agent_pause"), ["1", "2"]);
    assert.deepEqual(numbersOf(claimed[1] ?? [], "agent_create"), ["0", "1"]);
    assert.deepEqual(numbersOf(claimed.flat(), "agent_pause"), ["0", "1", "2", "3", "4"]);
    const order = creations.map((_, at) => String(at));
    assert.deepEqual(numbersOf(claimed.flat(), "agent_create"), order, "each once, the oldest first");
    assert.deepEqual(await claims.claim(MOST), []);
  });

  test("what is left is looked at in portions, also what came meanwhile (CLAIMS-3)", async () => {
    const creations = Array.from({ length: 60 }, (_, at) =>
      anAction({ session_id: `new${at}`, action_type: "agent_create" }),
    );
    await using scene = await Scene.open(creations);
    const claims = await scene.process(101);
    assert.equal((await claims.claim({ ...MOST, limit: 2 })).length, 2);
    // A request that was freed by another process, and one that another process has claimed.
    await scene.run(
      "update queue set claimed_by = 999 where action_id = (select action_id from queue where session_id = 'new2')",
    );
    claims.mayHave(["new59"]);
    const next = await claims.claim({ ...MOST, limit: 3 });
    assert.deepEqual(
      next.map(({ session_id }) => session_id),
      ["new3", "new4", "new5"],
    );
    await scene.run("update queue set claimed_by = null where claimed_by = 999");
    claims.mayHave(["new2"]);
    const claimed = next.length + 2;
    let [count, rounds] = [claimed, 0];
    for (; count < 60 && rounds < 100; rounds += 1) count += (await claims.claim({ ...MOST, limit: 2 })).length;
    assert.equal(count, 60);
    assert.ok(rounds <= 28, `${rounds} claims for ${60 - claimed}`);
  });
});
