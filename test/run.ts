import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { startPostgres } from "./postgres-process.ts";
import { REPOSITORY } from "./repository-files.ts";

const USAGE = `npm test [-- FILE…]        every test, or these files
npm run test:quick         what tells most in a minute: domain, embedded store, runtime promises, HTTP
npm run test:postgres      the suites of the HTTP API once more, with the server on PostgreSQL`;

const EVERYTHING = ["test/**/*.test.ts"];

/** Each of these takes seconds and needs nothing that `npm ci` did not bring. */
const QUICK = [
  "test/*.test.ts",
  "test/store/{exact-text,follow,embedded,state-chain,state-delta}.test.ts",
  "test/runtime/{lancedb,registry}.test.ts",
];

/** The suites that speak to the server over HTTP and sockets only, whatever store is behind it. */
const HTTP = [
  "test/server/{agents,conversations,conversation-pull,conversation-delivery,exact-texts,hostile-ids,requests,search}.test.ts",
  "test/server/{code-change,rerun,sessions,sockets,sockets-catch-up,steps,summaries,system}.test.ts",
];

const CONCURRENCY = 2;
const TIMEOUT_MS = 900_000;

async function runTests(files: readonly string[], environment: Record<string, string> = {}): Promise<boolean> {
  const options = ["--test", `--test-concurrency=${CONCURRENCY}`, `--test-timeout=${TIMEOUT_MS}`];
  const child = spawn(process.execPath, [...options, ...files], {
    cwd: REPOSITORY,
    stdio: "inherit",
    env: { NODE_COMPILE_CACHE: `${REPOSITORY}/node_modules/.cache/test`, ...process.env, ...environment },
  });
  const [code] = await once(child, "exit");
  return code === 0;
}

/** One database server for all files: each test makes a schema of its own in it. */
async function runOnPostgres(files: readonly string[]): Promise<boolean> {
  const environment = { EVERSTEP_TEST_STORE: "postgres" };
  if (process.env["EVERSTEP_TEST_POSTGRES"]) return runTests(files, environment);
  const database = await startPostgres();
  try {
    return await runTests(files, { ...environment, EVERSTEP_TEST_POSTGRES: database.url });
  } finally {
    await database.stop();
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
  if (values.quick) return runTests([...QUICK, ...HTTP]);
  if (values.postgres) return runOnPostgres(HTTP);
  if (positionals.length > 0) return runTests(positionals);
  const results = [await runTests(EVERYTHING), await runOnPostgres(HTTP)];
  return results.every((passed) => passed);
}

process.exitCode = (await run()) ? 0 : 1;
