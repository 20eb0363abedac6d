import { inspect } from "node:util";
import { CommanderError, InvalidArgumentError } from "commander";
import { EverstepError } from "../domain/errors.ts";
import { redactUrls } from "../domain/redact.ts";
import { VERSION } from "../domain/version.ts";
import { endWithReader } from "../surfaces/cli/broken-pipe.ts";
import { CommandError } from "../surfaces/cli/client.ts";
import { exampleOf } from "../surfaces/cli/examples.ts";
import { clientCommands } from "../surfaces/cli/program.ts";
import type { BackupOptions } from "./backup.ts";
import { readConfig, requireTokenOffLoopback, withProjectFolder } from "./config.ts";
import type { DemoOptions } from "./demo/demo.ts";
import { loadEnvFile } from "./env-file.ts";
import { keepHeapSmall, limitHeapGrowth } from "./heap-growth.ts";
import type { Role, StoreNotices } from "./serve.ts";

type StartOptions = { supervise?: boolean; watch?: boolean };
const SUPERVISE = "restart it after a crash (or EVERSTEP_SUPERVISE=1, the default in the container)";

const WATCH = "reload monikers when something in EVERSTEP_MONIKERS changes";

/** Without a command, arguments are those of `serve`. */
function argumentsOf(args: readonly string[]): readonly string[] {
  const [first] = args;
  const isForServe = first === undefined || (first.startsWith("-") && !/^(?:-h|--help|-V|--version)$/.test(first));
  return isForServe ? ["serve", ...args] : args;
}

function atLeastOne(value: string): number {
  if (!/^[1-9]\d{0,5}$/.test(value)) throw new InvalidArgumentError("It must be a whole number, at least 1.");
  return Number(value);
}

// Before the commands, whose defaults come from the environment.
const unreadable = loadEnvFile();
const program = clientCommands().exitOverride().version(VERSION);

program
  .command("serve")
  .description("run everything in one process (the default command): the runtime, the HTTP API, the console")
  .option("--supervise", SUPERVISE)
  .option("--watch", WATCH)
  .addHelpText(
    "after",
    "\nSettings are environment variables, also read from a file .env; .env.example lists them.\nIn the working folder it uses monikers/, tools/ and mcp.json.",
  )
  .action((options: StartOptions) => start("serve", options));

program
  .command("matrix")
  .description("run the Matrix bot, a client of a running server; see docs/matrix.md")
  .option("--health", "print whether the bot on MATRIX_STATE is in sync with its homeserver, and exit")
  .option("--supervise", SUPERVISE)
  .action(async ({ health, ...options }: StartOptions & { health?: boolean }) => {
    if (health) return (await import("../surfaces/matrix/run-matrix.ts")).checkMatrixHealth();
    const config = (await import("../surfaces/matrix/config.ts")).readMatrixConfig(process.env);
    if (isSupervised(config, options)) return runSupervised("matrix");
    keepHeapSmall();
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
    .addHelpText("after", "\nAny number of both can share a database: see docs/operating.md.")
    .action(async (options: StartOptions) => {
      await refuseAlone(role);
      await start(role, options);
    });

program
  .command("migrate-store <from> <to>")
  .description("copy everything from one store into another, empty one, and compare the two")
  .addHelpText("after", "\nExample:\n  everstep migrate-store lancedb:./data postgres://everstep@localhost/everstep")
  .action(async (from: string, to: string) => (await import("./maintenance.ts")).migrateStore(from, to));

program
  .command("check [folder]")
  .description("verify a data folder: checksums, gaps, duplicates, references; the exit code is 1 if it is damaged")
  .option("--json", "print JSON for programs")
  .addHelpText("after", "\nDefault: the folder of EVERSTEP_STORE. Stop the server first.")
  .action(async (folder: string | undefined, options: { json?: boolean }) =>
    (await import("./check.ts")).check(folder, options),
  );

program
  .command("backup <folder>")
  .description("copy all data into a new folder below <folder>, while the server keeps running")
  .option("--keep <count>", "how many backups to keep, newest first", atLeastOne, 7)
  .option("--url <url>", "the server (or EVERSTEP_URL); if none runs, the folder of EVERSTEP_STORE is copied")
  .option("--token <token>", "its token (or EVERSTEP_TOKEN)")
  .addHelpText(
    "after",
    "\nBackups share files they have in common, so the next one only costs what is new.\nRun it on the server's machine. For PostgreSQL use pg_dump or pg_basebackup.",
  )
  .action(async (folder: string, options: BackupOptions) => (await import("./backup.ts")).backUp(folder, options));

program
  .command("restore <backup>")
  .description("replace the data folder by a backup, after verifying every row of it")
  .option("--replace", "delete the current data folder once the backup is in place")
  .addHelpText(
    "after",
    "\n<backup> is one backup, or a folder of backups, of which the newest is used. EVERSTEP_STORE is the target. Stop the server first.",
  )
  .action(async (backup: string, options: { replace?: boolean }) =>
    (await import("./backup.ts")).restore(backup, options),
  );

program
  .command("prune")
  .description("delete sessions that ended long ago, with all their data, and archived conversations")
  .requiredOption("--older-than <duration>", "how long ago, in hours, days or weeks: 12h, 30d, 8w")
  .option("--store <url>", "the store (or EVERSTEP_STORE)")
  .addHelpText("after", "\nOn the embedded store stop the server first; on PostgreSQL everything may keep running.")
  .action(async ({ olderThan, store }: { olderThan: string; store?: string }) =>
    (await import("./maintenance.ts")).prune(olderThan, store),
  );

program
  .command("init [folder]")
  .description("create a project: a moniker with its test, tsconfig.json, mcp.json, .env.example, AGENTS.md")
  .addHelpText("after", "\nExisting files are never overwritten.")
  .action(async (folder: string | undefined) => (await import("./init.ts")).init(folder ?? "."));

program
  .command("demo")
  .description("watch an agent survive SIGKILL in the middle of a tool call; offline, in its own folder, in a minute")
  .option("--fast", "without the pauses")
  .option("--folder <path>", "the folder it works in and leaves behind; default: a new temporary folder")
  .addHelpText("after", () => exampleOf("demo"))
  .action(async (options: DemoOptions) => {
    endWithReader();
    await (await import("./demo/demo.ts")).demo(options);
  });

program
  .command("doctor")
  .description("check everything a start needs and say what to do; the exit code is 1 if something is broken")
  .option("--online", "also send the model a request, which costs a few tokens")
  .option("--json", "print JSON for programs")
  .action(async (options: { online?: boolean; json?: boolean }) => (await import("./doctor.ts")).doctor(options));

/** The store opens while the rest of the program loads. */
async function start(role: Role, options: StartOptions): Promise<void> {
  const config = withProjectFolder(readConfig(process.env));
  if (role !== "worker") requireTokenOffLoopback(config);
  if (isSupervised(config, options)) return runSupervised(role, ...(options.watch ? ["--watch"] : []));
  limitHeapGrowth();
  const { openStore } = await import("../store/open-store.ts");
  const notices: StoreNotices = { tell: (text) => console.error(text) };
  const opening = openStore(config.EVERSTEP_STORE, {
    pool_size: config.EVERSTEP_POSTGRES_POOL,
    notice: (text) => notices.tell(text),
    waiting: ({ message }) => console.error(redactUrls(message)),
  });
  opening.catch(() => {}); // Reported where it is awaited.
  await (await import("./serve.ts")).serve(role, config, { opening, notices, watch: options.watch === true });
}

const isSupervised = ({ EVERSTEP_SUPERVISE }: { EVERSTEP_SUPERVISE: string }, { supervise }: StartOptions): boolean =>
  supervise === true || EVERSTEP_SUPERVISE === "1";

async function runSupervised(command: Role | "matrix", ...flags: string[]): Promise<never> {
  const { supervise } = await import("./supervise.ts");
  return process.exit(await supervise([command, ...flags], (line) => console.error(line)));
}

/** The embedded store's folder has a single owner, so its parts cannot be separate processes. */
async function refuseAlone(role: string): Promise<void> {
  const { EVERSTEP_STORE } = readConfig(process.env);
  const { describeStore, isShared } = await import("../store/open-store.ts");
  if (isShared(EVERSTEP_STORE)) return;
  throw new EverstepError(
    "config_invalid",
    `everstep ${role} needs a store that several processes can share, and EVERSTEP_STORE=${describeStore(EVERSTEP_STORE)} is not one`,
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
