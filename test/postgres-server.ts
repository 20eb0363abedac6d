import { after, test } from "node:test";
import { administer, type PostgresProcess, startPostgres } from "./postgres-process.ts";

/** A real PostgreSQL for the tests of this process, or the one named by EVERSTEP_TEST_POSTGRES. */
type PostgresServer = {
  /** The URL of a database that the tests may use freely. */
  url: string;
};

let running: Promise<PostgresServer> | undefined;
let own: PostgresProcess | undefined;
after(async () => {
  await running?.catch(() => {});
  await own?.stop();
});

/** One server for each test process, started on first use. */
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

/** Tests that need the server. If there is none they are skipped, or fail with EVERSTEP_TEST_ALL=1. */
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

/** An empty, separate schema for a store, and how to remove it. On the server shared by all tests, unless another is given. */
export async function postgresHome(server?: PostgresServer): Promise<{ url: string; remove: () => Promise<void> }> {
  const { url } = server ?? (await postgresServer());
  const schema = `test_${process.pid}_${++schemas}`;
  await administer(url, `create schema ${schema}`);
  const address = new URL(url);
  address.searchParams.set("search_path", schema);
  return { url: address.href, remove: () => administer(url, `drop schema ${schema} cascade`) };
}
