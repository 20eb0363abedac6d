import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import type { FaultyProxy } from "../../test/cluster/faulty-proxy.ts";
import { administer, type PostgresProcess } from "../../test/postgres-process.ts";
import type { DatabaseFault } from "../plan/plan.ts";

const OURS = "from pg_stat_activity where application_name = 'everstep'";
/** PostgreSQL's code for a deadlock. */
const DEADLOCK = "40P01";
const CANCEL_EVERY_MS = 50;
const MOST_CONNECTIONS = 400;

/** Carries out one fault of the database. Resolves when it is over. */
export async function breakDatabase(
  database: PostgresProcess,
  proxy: FaultyProxy,
  fault: DatabaseFault,
): Promise<void> {
  const { url } = database;
  const until = performance.now() + fault.for_ms;
  switch (fault.kind) {
    case "restart_database":
      return database.restart(() => wait(fault.for_ms));
    case "end_connections":
      return administer(url, `select pg_terminate_backend(pid) ${OURS} and random() < ${fault.share}`);
    case "cancel_statements":
      while (performance.now() < until) {
        await administer(url, `select pg_cancel_backend(pid) ${OURS} and state = 'active'`);
        await wait(CANCEL_EVERY_MS);
      }
      return;
    case "network":
      return breakNetwork(proxy, fault);
    case "cut_connections":
      proxy.cutNext(...fault.cuts);
      await wait(fault.for_ms);
      return proxy.mend();
    case "hold_locks":
      return holdLocks(url, fault.statement, fault.for_ms);
    case "take_connections":
      return takeConnections(url, fault.for_ms);
    case "limit_statements":
      // Applies to connections made from now on.
      await administer(url, "alter role everstep set statement_timeout = '2s'");
      await administer(url, `select pg_terminate_backend(pid) ${OURS}`);
      await holdLocks(url, "lock table agent_state in access exclusive mode", fault.for_ms);
      await administer(url, "alter role everstep reset statement_timeout");
      return administer(url, `select pg_terminate_backend(pid) ${OURS}`);
  }
  fault satisfies never;
}

async function breakNetwork(proxy: FaultyProxy, fault: Extract<DatabaseFault, { kind: "network" }>): Promise<void> {
  switch (fault.how) {
    case "hold":
      proxy.cut();
      break;
    case "delay":
      proxy.delay(fault.delay_ms);
      break;
    case "refuse":
      proxy.refuse();
      break;
  }
  await wait(fault.for_ms);
  proxy.mend();
}

/** A forgotten transaction. It locks rows in no particular order, so PostgreSQL may choose it as the victim of a deadlock. */
async function holdLocks(url: string, statement: string, for_ms: number): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client.begin(async (transaction) => {
      await transaction.unsafe(statement);
      await wait(for_ms);
    });
  } catch (error) {
    if (!(error instanceof postgres.PostgresError && error.code === DEADLOCK)) throw error;
    await wait(for_ms);
  } finally {
    await client.end();
  }
}

/** Takes every free connection, and those that others release. */
async function takeConnections(url: string, for_ms: number): Promise<void> {
  const taken: postgres.Sql[] = [];
  try {
    const until = performance.now() + for_ms;
    while (performance.now() < until) {
      const client = postgres(url, { max: 1, onnotice: () => {} });
      taken.push(client);
      const isFull = await client`select 1`.then(
        () => taken.length >= MOST_CONNECTIONS,
        () => true,
      );
      if (isFull) await wait(CANCEL_EVERY_MS);
    }
  } finally {
    await Promise.all(taken.map((client) => client.end({ timeout: 0 })));
  }
}
