import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { EverstepError } from "../../src/domain/errors.ts";
import { Pool } from "../../src/store/postgres/connections.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import type { PostgresStore } from "../../src/store/postgres/postgres-store.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { administer } from "../postgres-process.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { advance, aSession, mustAdvance, mustCreate } from "./fixtures.ts";

const TIMEOUT = { timeout: 120_000 };

/** A store whose connections have a separate role, so that limits can be set for them alone. */
class LimitedStore implements AsyncDisposable {
  static #count = 0;
  readonly role: string;
  readonly url: string;
  readonly store: PostgresStore;
  /** The URL of a user with all privileges. */
  readonly admin: string;
  readonly #remove: () => Promise<void>;

  private constructor(role: string, url: string, store: PostgresStore, admin: string, remove: () => Promise<void>) {
    this.role = role;
    this.url = url;
    this.store = store;
    this.admin = admin;
    this.#remove = remove;
  }

  static async open(): Promise<LimitedStore> {
    const { url: admin, remove } = await postgresHome();
    const role = `limited_${process.pid}_${++LimitedStore.#count}`;
    const schema = new URL(admin).searchParams.get("search_path");
    await administer(admin, `create role ${role} login password 'limited'; grant all on schema ${schema} to ${role}`);
    const url = new URL(admin);
    url.username = role;
    url.password = "limited";
    const store = await openPostgresStore({ url: url.href });
    return new LimitedStore(role, url.href, store, admin, async () => {
      await remove();
      await administer(admin, `drop owned by ${role}; drop role ${role}`);
    });
  }

  /** A limit applies to connections made after it. */
  async limit(setting: string): Promise<void> {
    await administer(this.admin, `alter role ${this.role} ${setting}`);
    await this.endConnections();
  }

  endConnections(): Promise<void> {
    return administer(
      this.admin,
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${this.role}'`,
    );
  }

  cancelStatements(): Promise<void> {
    return administer(
      this.admin,
      `select pg_cancel_backend(pid) from pg_stat_activity where usename = '${this.role}' and state = 'active'`,
    );
  }

  /** Holds the lock like a forgotten transaction. */
  async locked(statement: string, work: () => Promise<void>): Promise<void> {
    const client = postgres(this.admin, { max: 1, onnotice: () => {} });
    try {
      await client.begin(async (transaction) => {
        await transaction.unsafe(statement);
        await work();
      });
    } finally {
      await client.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await administer(this.admin, `alter role ${this.role} reset all; alter role ${this.role} connection limit -1`);
    await this.store.close();
    await this.#remove();
  }
}

/** Commits steps until told to stop, as a runner does: a coded failure is retried. Resolves with the codes seen. */
async function keepWriting(store: Store, first: OwnedSession, signal: AbortSignal): Promise<Set<string>> {
  const codes = new Set<string>();
  let owned = first;
  while (!signal.aborted) {
    const next = advance(owned);
    const outcome = await insist(() => store.commit(next.batch), codes);
    assert.deepEqual(outcome, { kind: "committed" });
    owned = next.owned;
  }
  const { iteration } = owned.session;
  const steps = await store.listSteps({ session_id: owned.session.session_id, limit: 100_000, offset: 0 });
  assert.deepEqual(
    steps.map((step) => step.iteration),
    Array.from({ length: iteration + 1 }, (_, at) => at),
  );
  return codes;
}

async function insist<Result>(work: () => Promise<Result>, codes: Set<string>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      assert.ok(error instanceof EverstepError, `not a coded error: ${String(error)}`);
      codes.add(error.code);
      await wait(50);
    }
  }
}

/** Writes sessions while something happens; every commit is stored once. Resolves with the error codes seen. */
async function assertWritesThrough(store: Store, happens: () => Promise<void>): Promise<Set<string>> {
  const ending = new AbortController();
  const sessions = await Promise.all(Array.from({ length: 12 }, () => mustCreate(store)));
  const writing = Promise.all(sessions.map((session) => keepWriting(store, session, ending.signal)));
  const reading = (async () => {
    const codes = new Set<string>();
    while (!ending.signal.aborted) {
      await insist(() => store.counts(), codes);
      await insist(() => store.claimSessions({ worker: "other", limit: 10 }), codes);
      await wait(10);
    }
    return codes;
  })();
  try {
    await happens();
  } finally {
    ending.abort();
  }
  return new Set((await Promise.all([writing, reading])).flat().flatMap((codes) => [...codes]));
}

await onPostgres(() => {
  describe("an error of the server is retried or reported, and ends nothing", { concurrency: 1 }, () => {
    test("statements that are cancelled all the time", TIMEOUT, async () => {
      await using limited = await LimitedStore.open();
      const codes = await assertWritesThrough(limited.store, async () => {
        for (let round = 0; round < 60; round++) await limited.cancelStatements();
      });
      assert.deepEqual([...codes], []);
    });

    test("a statement_timeout of 2 s, and a table that is locked for 5", TIMEOUT, async () => {
      await using limited = await LimitedStore.open();
      await limited.limit("set statement_timeout = '2s'");
      const codes = await assertWritesThrough(limited.store, async () => {
        await limited.locked("lock table agent_state in access exclusive mode", () => wait(5000));
      });
      codes.delete("store_unavailable");
      assert.deepEqual([...codes], []);
    });

    test("rows that are locked for longer than anybody waits", TIMEOUT, async () => {
      await using limited = await LimitedStore.open();
      const codes = await assertWritesThrough(limited.store, async () => {
        await limited.locked("select 1 from agent_state for update", () => wait(10_000));
      });
      assert.deepEqual([...codes], ["store_unavailable"]);
      const rows = await backends(limited);
      assert.ok(rows <= 10, `${rows} connections are open: those that were given up still wait`);
    });

    test("an SQLSTATE that nobody knows: the commits beside it go through", TIMEOUT, async () => {
      await using limited = await LimitedStore.open();
      await administer(
        limited.url,
        `create function refuse() returns trigger language plpgsql as $$ begin
           raise exception 'not this one' using errcode = 'ZX001'; end $$;
         create trigger refuse before insert on agent_state for each row when (new.moniker = 'refused') execute function refuse()`,
      );
      const create = (moniker: string) =>
        limited.store.commit({ sessions: [{ kind: "create", session: aSession({ moniker }), worker: "one" }] });
      const monikers = ["count", "count", "refused", "count"];
      const outcomes = await Promise.allSettled(monikers.map(create));
      assert.deepEqual(
        outcomes.map((one) => (one.status === "fulfilled" ? one.value.kind : (one.reason as EverstepError).code)),
        ["committed", "committed", "store_refused", "committed"],
      );
    });

    test("a server that takes no writes for a while", TIMEOUT, async () => {
      await using limited = await LimitedStore.open();
      const codes = await assertWritesThrough(limited.store, async () => {
        await limited.limit("set default_transaction_read_only = on");
        await wait(1500);
        await limited.limit("reset default_transaction_read_only");
      });
      assert.ok(codes.has("store_read_only"), [...codes].join());
    });

    test("more connections than the server has", TIMEOUT, async () => {
      await using limited = await LimitedStore.open();
      const codes = await assertWritesThrough(limited.store, async () => {
        for (let round = 0; round < 4; round++) {
          await limited.limit("connection limit 1");
          await wait(500);
          await limited.limit("connection limit -1");
          await wait(500);
        }
      });
      codes.delete("store_unavailable");
      assert.deepEqual([...codes], []);
    });

    test("connections and transactions that the server ends when they rest", TIMEOUT, async () => {
      await using limited = await LimitedStore.open();
      await limited.limit("set idle_session_timeout = '100ms'");
      await limited.limit("set idle_in_transaction_session_timeout = '100ms'");
      const codes = await assertWritesThrough(limited.store, async () => {
        await wait(3000);
        await limited.limit("reset idle_session_timeout");
      });
      codes.delete("store_unavailable");
      assert.deepEqual([...codes], []);
      await wait(300);
      await mustAdvance(limited.store, await mustCreate(limited.store));
    });
  });

  test("a statement that failed after it had sent rows leaves nothing in the answer to the next one", async (t) => {
    const { url, remove } = await postgresHome();
    const pool = new Pool(url, 1);
    t.after(async () => {
      await pool.close();
      await remove();
    });
    for (const sent of [1, 4]) {
      const failing = "select 1 / ($1::integer - n) as fraction from generate_series(1, 10) n";
      await assert.rejects(pool.once(failing, sent + 1), { code: "store_refused" });
      assert.deepEqual([...(await pool.query("select $1::integer as n union all select 2", 1))], [{ n: 1 }, { n: 2 }]);
      await assert.rejects(pool.once(failing, sent + 1), { code: "store_refused" });
      const [row] = await pool.query("select 42 as answer");
      assert.equal(row?.["answer"], 42);
    }
  });
});

async function backends({ admin, role }: LimitedStore): Promise<number> {
  const client = postgres(admin, { max: 1 });
  try {
    const [row] = await client`select count(*)::integer as count from pg_stat_activity where usename = ${role}`;
    return row?.["count"] as number;
  } finally {
    await client.end();
  }
}
