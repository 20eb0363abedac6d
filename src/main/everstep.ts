import { inspect } from "node:util";
import { CommanderError } from "commander";
import { EverstepError } from "../domain/errors.ts";
import { redactUrls } from "../domain/redact.ts";
import { VERSION } from "../domain/version.ts";
import { describeStore, isShared, openStore } from "../store/open-store.ts";
import { CommandError } from "../surfaces/cli/client.ts";
import { clientCommands } from "../surfaces/cli/program.ts";
import { readConfig, requireTokenOffLoopback, withProjectFolder } from "./config.ts";
import { loadEnvFile } from "./env-file.ts";
import { limitHeapGrowth } from "./heap-growth.ts";
import type { Role, StoreNotices } from "./serve.ts";

type StartOptions = { supervise?: boolean; watch?: boolean };
const SUPERVISE = "start it again when it crashes (or EVERSTEP_SUPERVISE=1, the default in the container)";

const WATCH = "load monikers again when something in EVERSTEP_MONIKERS changes";

/** Without a command it serves, also with the options of that. */
function argumentsOf(given: readonly string[]): readonly string[] {
  const [first] = given;
  const isForServe = first === undefined || (first.startsWith("-") && !/^(?:-h|--help|-V|--version)$/.test(first));
  return isForServe ? ["serve", ...given] : given;
}

// Before the commands, whose defaults are of the environment.
const unreadable = loadEnvFile();
const program = clientCommands().exitOverride().version(VERSION);

program
  .command("serve")
  .description("run everything in one process, as `everstep` alone does: the runtime, the HTTP API, the console")
  .option("--supervise", SUPERVISE)
  .option("--watch", WATCH)
  .addHelpText(
    "after",
    "\nIt is set up by environment variables, which may be in a file .env; .env.example lists them.\nOf the working folder it uses monikers/, tools/ and mcp.json.",
  )
  .action((options: StartOptions) => start("serve", options));

program
  .command("matrix")
  .description("run the Matrix bot, which talks to a running server; docs/matrix.md tells how to set it up")
  .option("--health", "tell whether the bot on MATRIX_STATE follows its homeserver, and end")
  .option("--supervise", SUPERVISE)
  .action(async ({ health, ...options }: StartOptions & { health?: boolean }) => {
    if (health) return (await import("../surfaces/matrix/run-matrix.ts")).checkMatrixHealth();
    const config = (await import("../surfaces/matrix/config.ts")).readMatrixConfig(process.env);
    if (isSupervised(config, options)) return runSupervised("matrix");
    await (await import("./matrix.ts")).matrix(config);
  });

for (const [role, description] of [
  ["worker", "run agents only (needs PostgreSQL)"],
  ["server", "serve HTTP only (needs PostgreSQL)"],
] as const)
  program
    .command(role)
    .description(description)
    .option("--supervise", SUPERVISE)
    .option("--watch", WATCH)
    .addHelpText("after", "\nAny number of both can share a database. docs/operating.md tells how.")
    .action(async (options: StartOptions) => {
      refuseAlone(role);
      await start(role, options);
    });

program
  .command("migrate-store <from> <to>")
  .description("copy everything from one store into another, empty one, and compare them")
  .addHelpText("after", "\nExample:\n  everstep migrate-store lancedb:./data postgres://everstep@localhost/everstep")
  .action(async (from: string, to: string) => (await import("./maintenance.ts")).migrateStore(from, to));

program
  .command("check [folder]")
  .description(
    "verify a data folder: every row's checksum, gaps and repeats, references; the exit code is 1 if it is damaged",
  )
  .option("--json", "print JSON for programs")
  .addHelpText("after", "\nWithout a folder that of EVERSTEP_STORE is checked. Stop the server first.")
  .action(async (folder: string | undefined, options: { json?: boolean }) =>
    (await import("./check.ts")).check(folder, options),
  );

program
  .command("prune")
  .description("delete sessions that ended long ago, with all that is theirs, and archived conversations")
  .requiredOption("--older-than <duration>", "how long ago, in hours, days or weeks: 12h, 30d, 8w")
  .option("--store <url>", "the store (or EVERSTEP_STORE)")
  .addHelpText("after", "\nOn the embedded store stop the server first; on PostgreSQL everything may go on.")
  .action(async ({ olderThan, store }: { olderThan: string; store?: string }) =>
    (await import("./maintenance.ts")).prune(olderThan, store),
  );

program
  .command("init [folder]")
  .description("make a project: a moniker with its test, tsconfig.json, mcp.json, .env.example, AGENTS.md")
  .addHelpText("after", "\nNothing that is there already is overwritten.")
  .action(async (folder: string | undefined) => (await import("./init.ts")).init(folder ?? "."));

program
  .command("doctor")
  .description("check what a start needs, and say the next move; the exit code is 1 if something is broken")
  .option("--online", "also ask the model something, which costs a few tokens")
  .option("--json", "print JSON for programs")
  .action(async (options: { online?: boolean; json?: boolean }) => (await import("./doctor.ts")).doctor(options));

/** The store opens while the rest of the program is loaded. */
async function start(role: Role, options: StartOptions): Promise<void> {
  const config = withProjectFolder(readConfig(process.env));
  if (role !== "worker") requireTokenOffLoopback(config);
  if (isSupervised(config, options)) return runSupervised(role, ...(options.watch ? ["--watch"] : []));
  limitHeapGrowth();
  const notices: StoreNotices = { tell: (text) => console.error(text) };
  const opening = openStore(config.EVERSTEP_STORE, {
    pool_size: config.EVERSTEP_POSTGRES_POOL,
    notice: (text) => notices.tell(text),
    waiting: ({ message }) => console.error(redactUrls(message)),
  });
  opening.catch(() => {}); // It is told where it is awaited.
  await (await import("./serve.ts")).serve(role, config, { opening, notices, watch: options.watch === true });
}

const isSupervised = ({ EVERSTEP_SUPERVISE }: { EVERSTEP_SUPERVISE: string }, { supervise }: StartOptions): boolean =>
  supervise === true || EVERSTEP_SUPERVISE === "1";

async function runSupervised(command: Role | "matrix", ...flags: string[]): Promise<never> {
  const { supervise } = await import("./supervise.ts");
  return process.exit(await supervise([command, ...flags], (line) => console.error(line)));
}

/** One process owns the embedded store's folder, so its parts cannot run apart. */
function refuseAlone(role: string): void {
  const { EVERSTEP_STORE } = readConfig(process.env);
  if (isShared(EVERSTEP_STORE)) return;
  throw new EverstepError(
    "config_invalid",
    `everstep ${role} shares its store with other processes, and EVERSTEP_STORE=${describeStore(EVERSTEP_STORE)} cannot be shared`,
    "run `everstep serve`, or set EVERSTEP_STORE=postgres://…",
  );
}

try {
  if (unreadable) throw unreadable;
  await program.parseAsync(argumentsOf(process.argv.slice(2)), { from: "user" });
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    const isForPeople = error instanceof EverstepError || error instanceof CommandError;
    console.error(redactUrls(isForPeople ? error.message : inspect(error)));
    process.exitCode = error instanceof CommandError ? error.exit_code : 1;
  }
}
