import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Action } from "../../src/domain/action.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import { isLive, type Session, type SessionStatus } from "../../src/domain/session.ts";
import { Api, pathOf, read, SHAPES } from "./api.ts";
import { eventually, ServerProcess } from "./server-fixture.ts";
import type { Environment } from "./spawn-everstep.ts";
import { Watcher } from "./watcher.ts";

/** A running server, a client of its API, and a socket for awaiting changes of rows. */
export class World {
  readonly server: ServerProcess;
  readonly api: Api;
  readonly #watcher: Watcher;
  readonly #followed = new Set<string>();

  private constructor(server: ServerProcess, api: Api, watcher: Watcher) {
    this.server = server;
    this.api = api;
    this.#watcher = watcher;
  }

  static async of(server: ServerProcess): Promise<World> {
    return new World(server, new Api(server.url), await Watcher.connect(server.url));
  }

  close(): void {
    this.#watcher[Symbol.dispose]();
  }

  /** The session once it fits. */
  async session(session_id: string, fits: (session: Session) => boolean): Promise<Session> {
    return this.#rowThat(
      session_id,
      "agent_state_update",
      ({ session_id: id }) => id === session_id,
      fits,
      () => this.api.session(session_id),
    );
  }

  async status(session_id: string, ...statuses: SessionStatus[]): Promise<Session> {
    return this.session(session_id, ({ status }) => statuses.includes(status));
  }

  /** Waits for the end of a session that has too many rows to follow. */
  async ended(session_id: string): Promise<Session> {
    let session = await this.api.session(session_id);
    while (isLive(session.status)) {
      const { iteration } = session;
      session = await eventually(`the end or a further step of ${session_id}`, async () => {
        const now = await this.api.session(session_id);
        return (!isLive(now.status) || now.iteration > iteration) && now;
      });
    }
    return session;
  }

  async iteration(session_id: string, iteration: number): Promise<Session> {
    return this.session(session_id, (session) => session.iteration >= iteration);
  }

  /** The action once it fits. */
  async action(action_id: string, fits: (action: Action) => boolean): Promise<Action> {
    const current = await this.api.action(action_id);
    const isIt = (action: Action) => action.action_id === action_id;
    return this.#rowThat(current.session_id, "action_update", isIt, fits, () => this.api.action(action_id));
  }

  async settled(action_id: string): Promise<Action> {
    return this.action(action_id, ({ processed }) => processed);
  }

  async consumed(action_id: string): Promise<Action> {
    return this.action(action_id, ({ receipt }) => receipt === "consumed");
  }

  /** Controls a session and resolves with the settled action. */
  async control(session_id: string, verb: string, body: JsonValue = {}): Promise<Action> {
    const answer = read(await this.api.post(pathOf("sessions", session_id, verb), body), 202, SHAPES.accepted);
    return this.settled(answer.action_id);
  }

  /** Subscribes before it reads, so that no change is missed in between. */
  async #rowThat<Row>(
    session_id: string,
    event: string,
    isIt: (row: Row) => boolean,
    fits: (row: Row) => boolean,
    get: () => Promise<Row>,
  ): Promise<Row> {
    if (!this.#followed.has(session_id)) await this.#watcher.follow({ session_id });
    this.#followed.add(session_id);
    const from = this.#watcher.events.length;
    let last: Row = await get();
    if (fits(last)) return last;
    const what = () => `${event} of ${session_id}; the last was ${JSON.stringify(last)}`;
    return this.#watcher
      .until(`${event} of ${session_id}`, (events) => {
        const rows = events.slice(from).filter((one) => one.event === event && isIt(one.payload as Row));
        last = (rows.at(-1)?.payload as Row | undefined) ?? last;
        return rows.map(({ payload }) => payload as Row).find(fits);
      })
      .catch((error: unknown) => {
        throw new Error(what(), { cause: error });
      });
  }
}

/** One world for the tests of a file. */
export function sharedWorld(environment: Environment = {}): () => World {
  let world: World | undefined;
  before(async () => {
    world = await World.of(await ServerProcess.start(environment));
  });
  after(async () => {
    world?.close();
    await world?.server.finish();
  });
  return () => world ?? assert.fail("the world is opened before the tests run");
}
