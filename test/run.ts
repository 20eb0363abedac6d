import { globSync } from "node:fs";
import { parseArgs } from "node:util";
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

/** These take longest, so they begin first: else one of them would be alone at the end. */
const LONGEST = [
  "test/matrix/matrix.test.ts",
  "test/package/package.test.ts",
  "test/runtime/{lancedb,postgres}{,-faults}.test.ts",
  "test/store/{embedded,embedded-archiving,postgres}.test.ts",
];

const ON_POSTGRES = { EVERSTEP_TEST_STORE: "postgres" };
const LIMITS = {
  concurrency: 3,
  test_ms: IS_LONG ? 3_600_000 : 180_000,
  file_ms: IS_LONG ? 7_200_000 : 1_500_000,
};

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
async function runWithPostgres(runs: readonly FileRun[]): Promise<boolean> {
  if (process.env["EVERSTEP_TEST_POSTGRES"]) return runFiles(runs, LIMITS);
  // Where there is none, each file that needs it says so.
  const database = await startPostgres().catch(() => null);
  if (database) process.env["EVERSTEP_TEST_POSTGRES"] = database.url;
  try {
    return await runFiles(runs, LIMITS);
  } finally {
    await database?.stop();
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
  if (values.quick) return runFiles(asRuns(longestFirst(filesOf(QUICK))), LIMITS);
  if (values.postgres) return runWithPostgres(asRuns(filesOf(HTTP), ON_POSTGRES));
  if (positionals.length > 0) return runFiles(asRuns(positionals), LIMITS);
  return runWithPostgres(everything());
}

process.exitCode = (await run()) ? 0 : 1;
