import assert from "node:assert/strict";
import { ActionQueue } from "../../src/actions/action-queue.ts";
import type { SubmitRequest } from "../../src/actions/action-request.ts";
import type { Action } from "../../src/domain/action.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { Store, WorkerInfo } from "../../src/store/store.ts";
import { postgresHome } from "../postgres-server.ts";
import { everyPage } from "../runtime/runtime-fixture.ts";
import { eventually } from "../server/server-fixture.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";
import { Member } from "./member.ts";

/** Workers and servers on one database; the test is a further process that only submits and reads. */
export class Cluster implements AsyncDisposable {
  readonly url: string;
  readonly store: Store;
  readonly #queue: ActionQueue;
  readonly #members = new Set<Member>();
  readonly #folder: ScratchFolder;
  readonly #remove: () => Promise<void>;

  private constructor(
    url: string,
    store: Store,
    queue: ActionQueue,
    folder: ScratchFolder,
    remove: () => Promise<void>,
  ) {
    this.url = url;
    this.store = store;
    this.#queue = queue;
    this.#folder = folder;
    this.#remove = remove;
  }

  /**
   * `monikers`: a folder of monikers that the test itself may name. `home`: a database other than the one shared by all tests.
   */
  static async open(monikers?: string, home?: Awaited<ReturnType<typeof postgresHome>>): Promise<Cluster> {
    const { url, remove } = home ?? (await postgresHome());
    const store = await openPostgresStore({ url });
    const queue = new ActionQueue(store, await loadCatalog(monikers));
    return new Cluster(url, store, queue, await scratchFolder(), remove);
  }

  async workers(count: number): Promise<Member[]> {
    const members = Array.from({ length: count }, () => this.start("worker"));
    await Promise.all(members.map((member) => member.ready()));
    return members;
  }

  start(role: "worker" | "server", environment: Record<string, string> = {}): Member {
    const fixed = { EVERSTEP_STORE: this.url, EVERSTEP_PORT: "0", EVERSTEP_LOG_LEVEL: "warn" };
    const member = new Member(role, { ...fixed, ...environment }, this.#folder.path);
    this.#members.add(member);
    return member;
  }

  async submit(request: SubmitRequest): Promise<{ action_id: string; session_id: string }> {
    const outcome = await this.#queue.submit(request);
    assert.ok(outcome.kind === "accepted", JSON.stringify(outcome));
    return outcome;
  }

  async create(moniker: string, params: JsonObject = {}): Promise<string> {
    const payload = { moniker, params };
    return (await this.submit({ action_type: "agent_create", agent_id: "agent", payload })).session_id;
  }

  createMany(count: number, moniker: string, params: JsonObject = {}): Promise<string[]> {
    return Promise.all(Array.from({ length: count }, () => this.create(moniker, params)));
  }

  tell(session_id: string, guidance: string | number): Promise<{ action_id: string }> {
    return this.submit({ action_type: "agent_interrupt", session_id, payload: { guidance } });
  }

  async session(session_id: string): Promise<Session> {
    return (await this.store.getSession(session_id)) ?? assert.fail(`${session_id} is unknown`);
  }

  steps(session_id: string): Promise<Step[]> {
    return everyPage((page) => this.store.listSteps({ session_id, ...page }));
  }

  actions(session_id: string): Promise<Action[]> {
    return everyPage((page) => this.store.listActions({ session_id, ...page }));
  }

  async until(what: string, session_ids: string[], fits: (session: Session) => boolean): Promise<void> {
    // A session that fits stays that way, so checking one at a time is enough.
    for (const id of session_ids) await eventually(what, async () => fits(await this.session(id)));
  }

  /** The processes that run agents, by process id. */
  async owners(): Promise<Map<number, WorkerInfo>> {
    const workers = (await this.store.listWorkers?.()) ?? [];
    const taking = workers.filter(({ takes_sessions }) => takes_sessions);
    return new Map(taking.map((worker) => [Number(worker.name.split(":")[1]), worker]));
  }

  async owned(member: Member): Promise<number> {
    return (await this.owners()).get(member.pid)?.owned_sessions ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const member of this.#members) await member.kill();
    await this.store.close();
    await this.#remove();
    await this.#folder[Symbol.asyncDispose]();
  }
}

/** No gap and no repeat in the iterations, one row for each, and each step continues from the previous one. */
export function assertWhole(steps: Step[], last: number): void {
  const ok = steps.filter(({ status }) => status === "ok");
  assert.deepEqual(
    ok.map(({ iteration, text }) => ({ iteration, text })),
    Array.from({ length: last + 1 }, (_, at) => ({ iteration: at, text: String(at) })),
  );
  for (const [at, step] of ok.entries()) if (at > 0) assert.equal(step.step_token, ok[at - 1]?.next_step_token);
}
