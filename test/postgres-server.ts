import { after, test } from "node:test";
import { administer, type PostgresProcess, startPostgres } from "./postgres-process.ts";

/** A real PostgreSQL for the tests of this process, or the one that EVERSTEP_TEST_POSTGRES names. */
type PostgresServer = {
  /** Of a database that the tests may do in what they like. */
  url: string;
};

let running: Promise<PostgresServer> | undefined;
let own: PostgresProcess | undefined;
after(async () => {
  await running?.catch(() => {});
  await own?.stop();
});

/** One server for each test process, started when it is first asked for. */
export function postgresServer(): Promise<PostgresServer> {
  running ??= process.env["EVERSTEP_TEST_POSTGRES"]
    ? Promise.resolve({ url: process.env["EVERSTEP_TEST_POSTGRES"] })
    : start();
  return running;
}

async function start(): Promise<PostgresServer> {
  own = await startPostgres();
  return own;
}

/** Tests that need the server. Where it cannot be had they are skipped, or fail where EVERSTEP_TEST_ALL=1 asks for all. */
export async function onPostgres(define: () => void): Promise<void> {
  try {
    await postgresServer();
  } catch (error) {
    if (process.env["EVERSTEP_TEST_ALL"] === "1") throw error;
    test("on PostgreSQL", { skip: (error as Error).message.slice(0, 300) }, () => {});
    return;
  }
  define();
}

let schemas = 0;

/** An empty place for a store, apart from all others, and how to be rid of it. On the server of all tests, or on one of the test's own. */
export async function postgresHome(server?: PostgresServer): Promise<{ url: string; remove: () => Promise<void> }> {
  const { url } = server ?? (await postgresServer());
  const schema = `test_${process.pid}_${++schemas}`;
  await administer(url, `create schema ${schema}`);
  const address = new URL(url);
  address.searchParams.set("search_path", schema);
  return { url: address.href, remove: () => administer(url, `drop schema ${schema} cascade`) };
}
