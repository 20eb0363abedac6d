import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { z } from "zod";
import type { SubmitOutcome } from "../../src/actions/action-queue.ts";
import type { Action } from "../../src/domain/action.ts";
import type { ActionType } from "../../src/domain/action-type.ts";
import { newId, now } from "../../src/domain/ids.ts";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { Session, SessionOptions, SessionStatus } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { Runtime, type RuntimeOptions } from "../../src/main/runtime.ts";
import { loadCatalog, type VersionedMoniker } from "../../src/monikers/catalog.ts";
import type { Moniker } from "../../src/monikers/moniker.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { actionThat, sessionThat } from "./awaited-rows.ts";
import { HeldSteps } from "./held-steps.ts";

/** Where an engine keeps its data for one test, and how to remove it. `url` is a value of `EVERSTEP_STORE`. */
export type StoreHome = { url: string; remove(): Promise<void> };
export type MakeHome = () => Promise<StoreHome>;

/** A test that takes longer than this, in milliseconds, is stuck. */
export const TIMEOUT = { timeout: 180_000 };

export type WorldOptions = Partial<Omit<RuntimeOptions, "store" | "workspace" | "catalog">>;
export type Accepted = Extract<SubmitOutcome, { kind: "accepted" }>;
export type Creation = {
  agent_id?: string;
  session_id?: string;
  conversation_id?: string;
  params?: JsonObject;
  options?: SessionOptions;
};

/** Short grace periods, so that a step that a test never ends does not hold up the test's end. */
const QUICK: WorldOptions = { destroy_grace_ms: 20, shutdown_grace_ms: 20 };

/** A real store and a real runtime on it, with the built-in monikers and the test's own. */
export class World implements AsyncDisposable {
  readonly held = new HeldSteps();
  readonly catalog: Map<string, VersionedMoniker>;
  readonly workspace: string;
  readonly home: StoreHome;
  store: Store;
  runtime: Runtime;
  #options: WorldOptions;

  private constructor(home: StoreHome, store: Store, workspace: string, catalog: Iterable<[string, VersionedMoniker]>) {
    this.home = home;
    this.store = store;
    this.workspace = workspace;
    this.catalog = new Map(catalog);
    for (const moniker of this.held.monikers) this.catalog.set(moniker.name, moniker);
    this.#options = QUICK;
    this.runtime = this.#newRuntime();
  }

  static async open(makeHome: MakeHome, options: WorldOptions = {}): Promise<World> {
    const home = await makeHome();
    const workspace = await mkdtemp(join(tmpdir(), "everstep-workspace-"));
    const world = new World(home, await openStore(home.url), workspace, await loadCatalog(undefined));
    await world.start(options);
    return world;
  }

  async start(options: WorldOptions = {}): Promise<number> {
    this.#options = { ...QUICK, ...options };
    this.runtime = this.#newRuntime();
    return this.runtime.start();
  }

  /** Stops the runtime, closes the store, opens both again on the same data. */
  async restart(options: WorldOptions = {}): Promise<number> {
    await this.runtime.stop();
    await this.store.close();
    this.store = await openStore(this.home.url);
    return this.start(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime.stop();
    await this.store.close();
    await this.home.remove();
    await rm(this.workspace, { recursive: true, force: true });
  }

  /** Adds a moniker for the test and returns its name. */
  moniker(kind: Moniker["kind"], step: Moniker["step"], more: Partial<VersionedMoniker> = {}): string {
    const name = `test-${newId().toLowerCase()}`;
    this.catalog.set(name, { name, kind, description: "Of a test.", params: z.looseObject({}), step, ...more });
    return name;
  }

  async submit(request: object): Promise<Accepted> {
    const outcome = await this.runtime.queue.submit(request);
    assert.ok(outcome.kind === "accepted", JSON.stringify(outcome));
    return outcome;
  }

  async create(moniker: string, { agent_id = "agent", session_id, ...payload }: Creation = {}): Promise<string> {
    const ids = session_id === undefined ? { agent_id } : { agent_id, session_id };
    return (await this.submit({ action_type: "agent_create", ...ids, payload: { moniker, ...payload } })).session_id;
  }

  /** Sends guidance and resolves with its action's id when it is accepted. */
  async tell(session_id: string, guidance: JsonValue, mode: "next" | "now" = "next"): Promise<string> {
    return (await this.submit({ action_type: "agent_interrupt", session_id, payload: { guidance, mode } })).action_id;
  }

  /** Submits an action and waits until it is settled. */
  async act(action_type: ActionType, session_id: string, payload: JsonObject = {}): Promise<Action> {
    return this.settled((await this.submit({ action_type, session_id, payload })).action_id);
  }

  /** The same for an action that must succeed. */
  async do(action_type: ActionType, session_id: string, payload: JsonObject = {}): Promise<Action> {
    const action = await this.act(action_type, session_id, payload);
    assert.equal(action.outcome, "ok", action.error ?? "");
    return action;
  }

  async settled(action_id: string): Promise<Action> {
    return actionThat(this.store, action_id, ({ processed }) => processed);
  }

  async delivered(action_id: string): Promise<Action> {
    return actionThat(this.store, action_id, ({ receipt }) => receipt !== "accepted");
  }

  /** Waits until guidance is settled: a step used it, or it was returned. */
  async ended(action_id: string): Promise<Action> {
    return actionThat(this.store, action_id, ({ receipt }) => receipt === "consumed" || receipt === "bounced");
  }

  async session(session_id: string): Promise<Session> {
    const session = await this.store.getSession(session_id);
    assert.ok(session, `session ${session_id} is unknown`);
    return session;
  }

  async until(session_id: string, fits: (session: Session) => boolean): Promise<Session> {
    return sessionThat(this.store, session_id, fits);
  }

  async untilStatus(session_id: string, ...statuses: SessionStatus[]): Promise<Session> {
    return this.until(session_id, ({ status }) => statuses.includes(status));
  }

  async untilIteration(session_id: string, iteration: number): Promise<Session> {
    return this.until(session_id, (session) => session.iteration >= iteration);
  }

  /** Every step of a session, including failed ones. */
  async steps(session_id: string): Promise<Step[]> {
    return everyPage((page) => this.store.listSteps({ session_id, ...page }));
  }

  /** Every action of a session, newest first. */
  async actions(session_id: string): Promise<Action[]> {
    return everyPage((page) => this.store.listActions({ session_id, ...page }));
  }

  async conversation(conversation_id: string = newId()): Promise<string> {
    const row = {
      conversation_id,
      title: null,
      created_by: null,
      status: "open",
      tags: [],
      created_at: now(),
    } as const;
    await this.store.commit({ conversations: [{ kind: "create", conversation: { ...row, tags: [] } }] });
    return conversation_id;
  }

  /** The next text that a running step of the session emits. */
  async nextText(session_id: string): Promise<string> {
    for await (const event of this.runtime.events.follow({ session_id }, AbortSignal.timeout(TIMEOUT.timeout)))
      if (event.kind === "delta") return event.delta.text;
    throw new Error(`${session_id} said nothing`);
  }

  /** Runs another session from creation to end. Anything that would happen by mistake has happened by then. */
  async meanwhile(): Promise<void> {
    const bystander = await this.create("count", { agent_id: "bystander", params: { to: 10 } });
    await this.untilStatus(bystander, "done");
  }

  #newRuntime(): Runtime {
    return new Runtime({ ...this.#options, store: this.store, catalog: this.catalog, workspace: this.workspace });
  }
}

export async function everyPage<Row>(
  read: (page: { limit: number; offset: number }) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const page = await read({ limit: 500, offset: rows.length });
    rows.push(...page);
    if (page.length < 500) return rows;
  }
}

/** One world for the tests of a `describe`, opened before the first and closed after the last. */
export function sharedWorld(makeHome: MakeHome, options: WorldOptions = {}): () => World {
  let world: World | undefined;
  before(async () => {
    world = await World.open(makeHome, options);
  });
  after(async () => world?.[Symbol.asyncDispose]());
  return () => {
    assert.ok(world, "the world is opened before the tests run");
    return world;
  };
}
