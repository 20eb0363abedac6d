import { Command, InvalidArgumentError, Option } from "commander";
import { redactUrl, redactUrls } from "../../domain/redact.ts";
import { asTyped } from "./as-typed.ts";
import { assignments } from "./assignments.ts";
import { endWithReader } from "./broken-pipe.ts";
import { ApiClient } from "./client.ts";
import type { AnswerOptions } from "./commands/answer.ts";
import type { ArchiveOptions } from "./commands/archive.ts";
import type { ConversationsOptions, SayOptions } from "./commands/conversations.ts";
import type { CostsOptions } from "./commands/costs.ts";
import type { CreateOptions } from "./commands/create.ts";
import type { ForkOptions } from "./commands/fork.ts";
import type { InboxOptions } from "./commands/inbox.ts";
import type { LogsOptions } from "./commands/logs.ts";
import type { PsOptions } from "./commands/ps.ts";
import type { ReleaseOptions } from "./commands/release.ts";
import type { ReplayOptions, RerunOptions } from "./commands/rerun.ts";
import type { SearchOptions } from "./commands/search.ts";
import type { ToolsOptions } from "./commands/tools.ts";
import type { AddWebhookOptions, DeliveriesOptions } from "./commands/webhooks.ts";
import { exampleOf } from "./examples.ts";
import { EXIT_CODES } from "./exit-codes.ts";

const DEFAULT_URL = "http://127.0.0.1:4180";

type Connection = { url: string; token?: string };

/** The commands that talk to a running server, each loaded when it runs. The entry point adds those that are a server. */
export function clientCommands(): Command {
  const program = new Command("everstep")
    .exitOverride()
    .configureOutput({
      writeOut(text) {
        endWithReader();
        process.stdout.write(text);
      },
      writeErr: (text) => process.stderr.write(redactUrls(text)),
    })
    .description("Runs long-lived agents that never lose a step and that people can steer while they run.")
    .showHelpAfterError(`(${asTyped()} --help lists the commands)`)
    .showSuggestionAfterError()
    .addHelpText("after", EXIT_CODES);

  const url = defaultUrl();
  const commandOf =
    (parent: Command): AddCommand =>
    (usage, description, hidden = false) =>
      parent
        .command(usage, { hidden })
        .description(description)
        .addOption(new Option("--url <url>", "where Everstep listens").default(url, redactUrl(url)))
        .option("--token <token>", "the server's token (or EVERSTEP_TOKEN)")
        .option("--json", "print JSON for programs")
        .addHelpText("after", () => (parent === program ? exampleOf(usage.split(" ")[0] ?? "") : ""));
  const command = commandOf(program);

  startingCommands(command);
  readingCommands(command);
  historyCommands(command);
  steeringCommands(command);
  peopleCommands(command);
  codeCommands(command);
  webhookCommands(
    commandOf(
      program
        .command("webhooks")
        .description("notify your own programs of what sessions ask and when they end")
        .addHelpText("after", () => exampleOf("webhooks")),
    ),
  );
  completionCommands(program, command);

  return program;
}

/** Commands that start something. */
function startingCommands(command: AddCommand): void {
  command("create <moniker>", "start a session; by default the agent is named after the moniker")
    .option("--agent <id>", "the agent's id")
    .option("--session <id>", "your own id; makes the call idempotent")
    .option("--conversation <id>", "a conversation to join")
    .option("--param <key=value>", "input of the task, repeatable", collect, [])
    .option(
      "--option <key=value>",
      "an option such as max_steps=10, max_cost_usd=0.5 or model=openai/gpt-5, repeatable",
      collect,
      [],
    )
    .action(async (moniker: string, options: CreateOptions & Connection) =>
      (await import("./commands/create.ts")).create(connect(options), moniker, options),
    );

  command("chat", "chat with the agent of /agent_ws/ in the terminal; /help lists its commands").action(
    async (options: Connection) =>
      (await import("./commands/chat.ts")).chat(connect(options), { url: options.url, ...withToken(options) }),
  );

  command("mcp", "serve MCP over stdio, for clients without HTTP; others use the server's /mcp").action(
    async (options: Connection) => (await import("./commands/mcp.ts")).mcp({ url: options.url, ...withToken(options) }),
  );
}

function completionCommands(program: Command, command: AddCommand): void {
  program
    .command("completion <shell>")
    .description("print a script that completes commands, options and names in bash, zsh or fish")
    .addHelpText("after", () => exampleOf("completion"))
    .action(async (shell: string) => {
      endWithReader();
      console.log((await import("./commands/completion.ts")).completionScript(program, shell));
    });
  // Called by that script while somebody types.
  command("__complete <kind>", "names that the server knows", true).action(async (kind: string, options: Connection) =>
    (await import("./commands/completion.ts")).completions(connect(options), kind),
  );
}

type AddCommand = (usage: string, description: string, hidden?: boolean) => Command;

/** Where history is kept. */
function historyCommands(command: AddCommand): void {
  command(
    "archive",
    "move the history of sessions that ended long ago into files, or bring it back; alone it lists the files",
  )
    .option("--older-than <duration>", "archive sessions that ended so long ago: 12h, 30d, 8w")
    .option("--restore <session...>", "bring the history of these sessions back")
    .option("--drop-older-than <duration>", "delete whole files all of whose sessions ended so long ago, for good")
    .option("--dry-run", "only count")
    .action(async (options: ArchiveOptions & Connection) =>
      (await import("./commands/archive.ts")).archive(connect(options), options),
    );
}

/** Read-only commands. */
function readingCommands(command: AddCommand): void {
  command("ps", "list sessions, live ones first")
    .option("--status <status>", "running, waiting, paused, stopping, stopped, done or error")
    .option("--agent <id>", "only an agent's sessions")
    .option("--limit <number>", "the most to list", wholeNumber, "50")
    .action(async (options: PsOptions & Connection) =>
      (await import("./commands/ps.ts")).ps(connect(options), options),
    );

  command("logs <session>", "print a session's steps; <session> may be an agent's id or the start of a session id")
    .option("-f, --follow", "follow new steps until the session ends; the exit code is 3 if it failed")
    .option("--tail <number>", "start with the last <number> steps", wholeNumber)
    .action(async (session: string, options: LogsOptions & Connection) =>
      (await import("./commands/logs.ts")).logs(connect(options), session, options),
    );

  command("search <query>", "search all steps and messages")
    .option("--agent <id>", "only in an agent's sessions")
    .option("--session <id>", "only in a session")
    .option("--limit <number>", "the most to list", wholeNumber, "20")
    .action(async (query: string, options: SearchOptions & Connection) =>
      (await import("./commands/search.ts")).search(connect(options), query, options),
    );

  command("monikers [moniker]", "list the monikers, or describe one").action(
    async (moniker: string | undefined, options: Connection & { json?: boolean }) =>
      (await import("./commands/monikers.ts")).monikers(connect(options), moniker, options),
  );

  command("conversations [conversation]", "list conversations, or print the messages of one")
    .option("--limit <number>", "the most to list", wholeNumber, "50")
    .action(async (conversation: string | undefined, options: ConversationsOptions & Connection) =>
      (await import("./commands/conversations.ts")).conversations(connect(options), conversation, options),
    );

  command("open [session]", "print the address of the console, or of a session in it").action(
    async (session: string | undefined, options: Connection & { json?: boolean }) =>
      (await import("./commands/open.ts")).open(connect(options), session, options),
  );

  command("tools", "list the tools that agents can use, and their servers")
    .option("--session <id>", "with the policies of a session")
    .action(async (options: ToolsOptions & Connection) =>
      (await import("./commands/tools.ts")).tools(connect(options), options),
    );

  command("costs", "what sessions cost, by start date, agent or model")
    .option("--by <what>", "day, agent or model", "day")
    .option("--since <date>", "sessions started since a date such as 2026-01-31; default: 30 days ago")
    .action(async (options: CostsOptions & Connection) =>
      (await import("./commands/costs.ts")).costs(connect(options), options),
    );
  command("workers", "list the processes that share the store, and their sessions").action(
    async (options: Connection & { json?: boolean }) =>
      (await import("./commands/workers.ts")).workers(connect(options), options),
  );
}

/** Commands that steer a session. */
function steeringCommands(command: AddCommand): void {
  for (const [verb, description] of CONTROLS) {
    const added = command(`${verb} <session>`, description).option("--reason <text>", "why, for the record");
    if (verb === "resume") added.option("--option <key=value>", RESUME_OPTION, collect, []);
    added.action(async (session: string, options: ControlFlags & Connection) =>
      (await import("./commands/control.ts")).control(connect(options), verb, session, controlBody(options), options),
    );
  }

  command("interrupt <session> <text>", "send guidance to a session's next step")
    .option("--now", "interrupt the running step; it runs again with the guidance")
    .action(async (session: string, text: string, options: Connection & { json?: boolean; now?: boolean }) =>
      (await import("./commands/control.ts")).control(
        connect(options),
        "interrupt",
        session,
        { guidance: text, mode: options.now ? "now" : "next" },
        options,
      ),
    );

  command("fork <session>", "start a new session from a step of another")
    .option("--at <iteration>", "the step to start from; default: the last one", wholeNumber)
    .option("--session <id>", "your own id for the new session")
    .option("--guidance <text>", "guidance for its first step")
    .option("--moniker <name>", "run another moniker")
    .option("--param <key=value>", "a param that differs from the parent's, repeatable", collect, [])
    .option("--option <key=value>", "an option that differs from the parent's, repeatable", collect, [])
    .action(async (session: string, options: ForkOptions & Connection) =>
      (await import("./commands/fork.ts")).fork(connect(options), session, options),
    );

  command("drop <action>", "take back guidance that no step has used yet, by the id of its action").action(
    async (action: string, options: Connection & { json?: boolean }) =>
      (await import("./commands/drop.ts")).drop(connect(options), action, options),
  );
}

/** Commands for communication between agents and people. */
function peopleCommands(command: AddCommand): void {
  command("say <conversation> <words...>", "post a message to a conversation")
    .option("--user <name>", "the sender; default: your user name on this machine")
    .action(async (conversation: string, words: string[], options: SayOptions & Connection) =>
      (await import("./commands/conversations.ts")).say(connect(options), conversation, words, options),
    );

  command("inbox", "list the sessions that need a person: their questions, failures and limits")
    .option("--agent <id>", "only an agent's sessions")
    .option("--limit <number>", "the most to list", wholeNumber, "50")
    .action(async (options: InboxOptions & Connection) =>
      (await import("./commands/inbox.ts")).inbox(connect(options), options),
    );

  command("answer <session> <value...>", "answer a session's question")
    .option("--user <name>", "who answers, for the record")
    .addHelpText(
      "after",
      "\nName a choice by its value, label or number; form fields as name=value words or one JSON object;\nanything else is text. `everstep inbox` shows the questions.",
    )
    .action(async (session: string, words: string[], options: AnswerOptions & Connection) =>
      (await import("./commands/answer.ts")).answer(connect(options), session, words, options),
    );

  command("release [session...]", "release sessions that a start with EVERSTEP_START_HELD=1 holds")
    .option("--agent <id>", "an agent's sessions")
    .option("--all", "all sessions")
    .action(async (sessions: string[], options: ReleaseOptions & Connection) =>
      (await import("./commands/release.ts")).release(connect(options), sessions, options),
    );
}

/** Commands for developing monikers. */
function codeCommands(command: AddCommand): void {
  command("reload", "reload monikers whose code or prompts changed, without a restart")
    .addHelpText(
      "after",
      "\nA running step finishes on the old code; the next one runs the new. If a file cannot be loaded, its last good version stays in use.\nOnly the process at --url reloads; send SIGHUP to others that share its store.",
    )
    .action(async (options: Connection & { json?: boolean }) =>
      (await import("./commands/reload.ts")).reload(connect(options), options),
    );

  command("rerun <session> <iteration>", "rerun a recorded step on the current code; nothing is written")
    .option("--model <provider/model>", "a model other than the configured one")
    .option("--guidance <text>", "replaces the step's guidance")
    .option("--state <json>", "replaces the state the step started from")
    .action(async (session: string, iteration: string, options: RerunOptions & Connection) =>
      (await import("./commands/rerun.ts")).rerun(connect(options), session, iteration, options),
    );

  command("replay <session>", "rerun recorded steps on the current code and print differences; nothing is written")
    .option("--from <iteration>", "the first step", wholeNumber, "0")
    .option("--to <iteration>", "the last step", wholeNumber)
    .option("--model <provider/model>", "a model other than the configured one")
    .addHelpText(
      "after",
      "\nEach step gets its recorded input, not the previous rerun's result: a difference does not spread to later steps.\nThe exit code is 1 if anything differs. Workspace files are not written; other side effects of a moniker happen again.",
    )
    .action(async (session: string, options: ReplayOptions & Connection) =>
      (await import("./commands/rerun.ts")).replay(connect(options), session, options),
    );
}

/** Webhook commands: docs/webhooks.md. */
function webhookCommands(command: AddCommand): void {
  const load = () => import("./commands/webhooks.ts");
  type Options = Connection & { json?: boolean };

  command("list", "list the webhooks").action(async (options: Options) =>
    (await load()).listWebhooks(connect(options), options),
  );
  command("add <webhook> <address>", "add a webhook, which shows its secret once, or change its address")
    .option("--event <event>", "session.asks, session.ended or session.failed, repeatable; default: all", collect, [])
    .option("--agent <id>", "only for an agent's sessions")
    .addHelpText("after", "\nExample:\n  everstep webhooks add ops https://example.com/everstep --event session.asks")
    .action(async (webhook: string, address: string, options: AddWebhookOptions & Connection) =>
      (await load()).addWebhook(connect(options), webhook, address, options),
    );
  command("rotate-secret <webhook>", "create a new secret; the previous one also signs for one more day").action(
    async (webhook: string, options: Options) => (await load()).rotateSecret(connect(options), webhook, options),
  );
  command("remove <webhook>", "remove a webhook with its deliveries").action(
    async (webhook: string, options: Options) => (await load()).removeWebhook(connect(options), webhook, options),
  );
  command("deliveries <webhook>", "list deliveries, newest first")
    .option("--limit <number>", "the most to list", wholeNumber, "20")
    .action(async (webhook: string, options: DeliveriesOptions & Connection) =>
      (await load()).deliveries(connect(options), webhook, options),
    );
  command("send-again <webhook> <delivery>", "resend a delivery, or send a waiting one now").action(
    async (webhook: string, delivery: string, options: Options) =>
      (await load()).sendAgain(connect(options), webhook, delivery, options),
  );
}

type ControlFlags = { json?: boolean; reason?: string; option?: string[] };
const RESUME_OPTION = "an option to change, such as a limit that was reached: max_steps=100, repeatable";

const controlBody = ({ reason, option = [] }: ControlFlags) => ({
  ...(reason === undefined ? {} : { reason }),
  ...(option.length === 0 ? {} : { options: assignments(option) }),
});

const CONTROLS = [
  ["pause", "pause a session; a running step may finish, no further one starts"],
  ["resume", "continue a session, or retry its failed step"],
  ["destroy", "end a session permanently"],
] as const;

function connect(options: Connection): ApiClient {
  endWithReader();
  return new ApiClient({ url: options.url, token: withToken(options).token, default_url: defaultUrl() });
}

export function defaultUrl(): string {
  const port = process.env["EVERSTEP_PORT"];
  return process.env["EVERSTEP_URL"] ?? (port ? `http://127.0.0.1:${port}` : DEFAULT_URL);
}

export const withToken = ({ token }: Pick<Connection, "token">): { token?: string } => {
  const value = token ?? (process.env["EVERSTEP_TOKEN"] || undefined);
  return value === undefined ? {} : { token: value };
};

const collect = (value: string, before: string[]): string[] => [...before, value];

function wholeNumber(value: string): string {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError("It must be a whole number.");
  return value;
}
