import { chmodSync, globSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { availableParallelism, freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { builtProgram } from "./built-program.ts";
import { installedSynapse } from "./matrix/synapse/installation.ts";
import { SynapseProcess } from "./matrix/synapse/synapse-process.ts";
import { startPostgres } from "./postgres-process.ts";
import { IS_LONG } from "./repetitions.ts";
import { REPOSITORY } from "./repository-files.ts";
import { type FileRun, runFiles } from "./run-files.ts";

const USAGE = `npm test [-- FILE…]        every test, or these files
npm run test:quick         what tells most in a minute: domain, embedded store, runtime promises, HTTP
npm run test:postgres      the suites of the HTTP API once more, with the server on PostgreSQL

EVERSTEP_TEST_LONG=1       tests that repeat themselves do so many times`;

/** Each of these takes seconds and needs nothing that `npm ci` did not bring. */
const QUICK = [
  "test/*.test.ts",
  "test/store/{exact-text,follow,embedded,state-chain,state-delta}.test.ts",
  "test/runtime/{lancedb,registry}.test.ts",
  "test/server/{agents,conversations,requests,sessions,sockets,steps,system}.test.ts",
];

/** The suites that speak to the server over HTTP and sockets only, whatever store is behind it. */
const HTTP = [
  "test/server/{agents,conversations,conversation-pull,conversation-delivery,hostile-ids,requests,search}.test.ts",
  "test/server/{code-change,rerun,sessions,sockets,sockets-catch-up,steps,summaries,system}.test.ts",
];

/**
 * These take longest, so they begin first where nobody has measured yet. Those of Matrix wait for one homeserver, so others run
 * beside them.
 */
const LONGEST = [
  "test/runtime/{lancedb,postgres}-faults.test.ts",
  "test/package/package.test.ts",
  "test/matrix/encrypted.test.ts",
  "test/console/pictures.test.ts",
  "test/store/{embedded,postgres}.test.ts",
  "test/matrix/failures.test.ts",
  "test/runtime/{lancedb,postgres}.test.ts",
  "test/matrix/talking.test.ts",
  "test/archive/{,postgres-}crash.test.ts",
  "test/store/{faults-corruption,large-states}.test.ts",
  "test/matrix/steering.test.ts",
  "test/server/{backup,cli-serve,limits}.test.ts",
  "test/cluster/{blocked,outages,workers}.test.ts",
];

const ON_POSTGRES = { EVERSTEP_TEST_STORE: "postgres" };
const LIMITS = {
  // Most wait now and then; each may have a server, a database's connections and a browser in memory.
  concurrency: Math.min(2 * availableParallelism(), 8),
  test_ms: IS_LONG ? 3_600_000 : 180_000,
  file_ms: IS_LONG ? 7_200_000 : 1_500_000,
};

const MEMORY = "/dev/shm";
/** More than the temporary files of a run ever take. */
const ENOUGH_BYTES = 8 * 2 ** 30;

const filesOf = (patterns: readonly string[]): string[] => globSync([...patterns], { cwd: REPOSITORY }).sort();
const asRuns = (files: readonly string[], environment: FileRun["environment"] = {}): FileRun[] =>
  files.map((file) => ({ file, environment }));

function longestFirst(files: readonly string[]): string[] {
  const first = LONGEST.flatMap((pattern) => filesOf([pattern])).filter((file) => files.includes(file));
  return [...new Set([...first, ...files])];
}

function everything(): FileRun[] {
  return [...asRuns(longestFirst(filesOf(["test/**/*.test.ts"]))), ...asRuns(filesOf(HTTP), ON_POSTGRES)];
}

/** One database server for all files: each test makes a schema of its own in it. */
async function startDatabase(): Promise<AsyncDisposable | null> {
  if (process.env["EVERSTEP_TEST_POSTGRES"]) return null;
  // Where there is none, each file that needs it says so.
  const database = await startPostgres().catch(() => null);
  if (!database) return null;
  process.env["EVERSTEP_TEST_POSTGRES"] = database.url;
  return { [Symbol.asyncDispose]: () => database.stop() };
}

/** One homeserver for all files: each test registers users of its own. */
async function startHomeserver(): Promise<AsyncDisposable | null> {
  if (process.env["EVERSTEP_TEST_HOMESERVER"]) return null;
  const synapse = (await installedSynapse()) && (await SynapseProcess.start().catch(() => null));
  if (synapse) process.env["EVERSTEP_TEST_HOMESERVER"] = synapse.url;
  return synapse;
}

async function runWithServers(runs: readonly FileRun[]): Promise<boolean> {
  await using _database = await startDatabase();
  return await runWithHomeserver(runs);
}

async function runWithHomeserver(runs: readonly FileRun[]): Promise<boolean> {
  const isShared = runs.filter(({ file }) => file.includes("test/matrix/")).length > 1;
  await using _homeserver = isShared ? await startHomeserver() : null;
  return await runFiles(runs, LIMITS);
}

/** A folder for the temporary files of this run: in memory where there is plenty, since stores sync what they write. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(hasMemory() ? MEMORY : tmpdir(), "everstep-test-"));
  // PostgreSQL runs as another user where the tests run as root.
  chmodSync(folder, 0o755);
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return Math.min(bavail * bsize, freemem()) >= ENOUGH_BYTES;
  } catch {
    return false;
  }
}

async function run(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      postgres: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(USAGE);
    return true;
  }
  // Also where it is set to something else: what was built then is not what is tested now.
  const { program, threads } = await builtProgram();
  process.env["EVERSTEP_TEST_PROGRAM"] = program;
  process.env["EVERSTEP_TEST_THREADS"] = threads;
  process.env["TMPDIR"] = temporaryFolder();
  if (values.quick) return runFiles(asRuns(longestFirst(filesOf(QUICK))), LIMITS);
  if (values.postgres) return runWithServers(asRuns(filesOf(HTTP), ON_POSTGRES));
  if (positionals.length > 0) return runWithHomeserver(asRuns(positionals));
  return runWithServers(everything());
}

process.exitCode = (await run()) ? 0 : 1;
