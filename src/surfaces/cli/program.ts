import { Command, InvalidArgumentError, Option } from "commander";
import { redactUrl, redactUrls } from "../../domain/redact.ts";
import { asTyped } from "./as-typed.ts";
import { assignments } from "./assignments.ts";
import { endWithReader } from "./broken-pipe.ts";
import { ApiClient } from "./client.ts";
import type { AnswerOptions } from "./commands/answer.ts";
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

/** The commands that talk to a running server, each loaded when it runs. Those that are one are added by the entry point. */
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
  lookingCommands(command);
  steeringCommands(command);
  peopleCommands(command);
  codeCommands(command);
  webhookCommands(
    commandOf(
      program
        .command("webhooks")
        .description("tell programs of yours what sessions ask and do")
        .addHelpText("after", () => exampleOf("webhooks")),
    ),
  );
  completionCommands(program, command);

  return program;
}

/** Commands that start something. */
function startingCommands(command: AddCommand): void {
  command("create <moniker>", "start a session; the agent is named after the moniker unless told otherwise")
    .option("--agent <id>", "the agent's id")
    .option("--session <id>", "an id of your own; the same call again does nothing twice")
    .option("--conversation <id>", "a conversation to speak in")
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

  command("chat", "talk to the agent of /agent_ws/ in the terminal; /help there lists its commands").action(
    async (options: Connection) =>
      (await import("./commands/chat.ts")).chat(connect(options), { url: options.url, ...withToken(options) }),
  );

  command(
    "mcp",
    "serve MCP over stdio for clients that cannot speak HTTP; those that can use /mcp of the server",
  ).action(async (options: Connection) =>
    (await import("./commands/mcp.ts")).mcp({ url: options.url, ...withToken(options) }),
  );

  command("demo", "watch a joke agent being guided, paused and resumed")
    .option("--fast", "without the pauses")
    .action(async (options: Connection & { fast?: boolean }) =>
      (await import("./commands/demo.ts")).demo(connect(options), options),
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
  // Asked by that script while somebody types.
  command("__complete <kind>", "names that the server knows", true).action(async (kind: string, options: Connection) =>
    (await import("./commands/completion.ts")).completions(connect(options), kind),
  );
}

type AddCommand = (usage: string, description: string, hidden?: boolean) => Command;

/** Commands that only look. */
function lookingCommands(command: AddCommand): void {
  command("ps", "list sessions, those that live first")
    .option("--status <status>", "only those that are running, waiting, paused, stopping, stopped, done or error")
    .option("--agent <id>", "only those of an agent")
    .option("--limit <number>", "how many at the most", wholeNumber, "50")
    .action(async (options: PsOptions & Connection) =>
      (await import("./commands/ps.ts")).ps(connect(options), options),
    );

  command("logs <session>", "print a session's steps; an agent's name or the beginning of an id is enough")
    .option("-f, --follow", "go on as they come, until the session ends; the exit code is 3 where it failed")
    .option("--tail <number>", "begin with the last few", wholeNumber)
    .action(async (session: string, options: LogsOptions & Connection) =>
      (await import("./commands/logs.ts")).logs(connect(options), session, options),
    );

  command("search <query>", "find words in everything that was ever said")
    .option("--agent <id>", "only in an agent's sessions")
    .option("--session <id>", "only in a session")
    .option("--limit <number>", "how many at the most", wholeNumber, "20")
    .action(async (query: string, options: SearchOptions & Connection) =>
      (await import("./commands/search.ts")).search(connect(options), query, options),
    );

  command("monikers [moniker]", "list the tasks that agents can be given, or tell what one of them takes").action(
    async (moniker: string | undefined, options: Connection & { json?: boolean }) =>
      (await import("./commands/monikers.ts")).monikers(connect(options), moniker, options),
  );

  command("conversations [conversation]", "list conversations, or print what was said in one")
    .option("--limit <number>", "how many at the most", wholeNumber, "50")
    .action(async (conversation: string | undefined, options: ConversationsOptions & Connection) =>
      (await import("./commands/conversations.ts")).conversations(connect(options), conversation, options),
    );

  command("open [session]", "print the address of the console, or of a session in it").action(
    async (session: string | undefined, options: Connection & { json?: boolean }) =>
      (await import("./commands/open.ts")).open(connect(options), session, options),
  );

  command("tools", "list the tools that agents can use, and the servers that they come from")
    .option("--session <id>", "with what a session's options allow")
    .action(async (options: ToolsOptions & Connection) =>
      (await import("./commands/tools.ts")).tools(connect(options), options),
    );

  command("costs", "what sessions cost, by the day on which they began, by agent or by model")
    .option("--by <what>", "day, agent or model", "day")
    .option("--since <date>", "sessions that began since, such as 2026-01-31; 30 days ago by default")
    .action(async (options: CostsOptions & Connection) =>
      (await import("./commands/costs.ts")).costs(connect(options), options),
    );
  command("workers", "list the processes that share the store, and what they own").action(
    async (options: Connection & { json?: boolean }) =>
      (await import("./commands/workers.ts")).workers(connect(options), options),
  );
}

/** Commands that say something to a session. */
function steeringCommands(command: AddCommand): void {
  for (const [verb, description] of CONTROLS) {
    const added = command(`${verb} <session>`, description).option("--reason <text>", "why, for the record");
    if (verb === "resume") added.option("--option <key=value>", LIFTED, collect, []);
    added.action(async (session: string, options: ControlFlags & Connection) =>
      (await import("./commands/control.ts")).control(connect(options), verb, session, controlBody(options), options),
    );
  }

  command("interrupt <session> <text>", "give a session guidance for its next step")
    .option("--now", "cut the running step short; it runs again with the guidance")
    .action(async (session: string, text: string, options: Connection & { json?: boolean; now?: boolean }) =>
      (await import("./commands/control.ts")).control(
        connect(options),
        "interrupt",
        session,
        { guidance: text, mode: options.now ? "now" : "next" },
        options,
      ),
    );

  command("fork <session>", "start a session that goes on from a step of another")
    .option("--at <iteration>", "the step from which it goes on; the last one by default", wholeNumber)
    .option("--session <id>", "an id of your own for the new session")
    .option("--guidance <text>", "what its first step is told")
    .option("--moniker <name>", "another task for it")
    .option("--param <key=value>", "an input that differs from the parent's, repeatable", collect, [])
    .option("--option <key=value>", "an option that differs from the parent's, repeatable", collect, [])
    .action(async (session: string, options: ForkOptions & Connection) =>
      (await import("./commands/fork.ts")).fork(connect(options), session, options),
    );

  command("drop <action>", "take back guidance that no step used yet, by the id of its action").action(
    async (action: string, options: Connection & { json?: boolean }) =>
      (await import("./commands/drop.ts")).drop(connect(options), action, options),
  );
}

/** Commands for what agents and people say to each other. */
function peopleCommands(command: AddCommand): void {
  command("say <conversation> <words...>", "say something in a conversation")
    .option("--user <name>", "who says it; your name on this machine by default")
    .action(async (conversation: string, words: string[], options: SayOptions & Connection) =>
      (await import("./commands/conversations.ts")).say(connect(options), conversation, words, options),
    );

  command("inbox", "list the sessions that need a person: their questions, failures and limits")
    .option("--agent <id>", "only those of an agent")
    .option("--limit <number>", "how many at the most", wholeNumber, "50")
    .action(async (options: InboxOptions & Connection) =>
      (await import("./commands/inbox.ts")).inbox(connect(options), options),
    );

  command("answer <session> <value...>", "answer what a session asks")
    .option("--user <name>", "who answers, for the record")
    .addHelpText(
      "after",
      "\nA choice is given by its value, its label or its number; the fields of a form as name=value words or as one JSON object;\nanything else is text. `everstep inbox` shows the questions.",
    )
    .action(async (session: string, words: string[], options: AnswerOptions & Connection) =>
      (await import("./commands/answer.ts")).answer(connect(options), session, words, options),
    );

  command("release [session...]", "let sessions go on that are held since a start with EVERSTEP_START_HELD=1")
    .option("--agent <id>", "those of an agent")
    .option("--all", "every one")
    .action(async (sessions: string[], options: ReleaseOptions & Connection) =>
      (await import("./commands/release.ts")).release(connect(options), sessions, options),
    );
}

/** Commands for those who change monikers while they run. */
function codeCommands(command: AddCommand): void {
  command("reload", "load monikers whose code or prompts changed, without a restart")
    .addHelpText(
      "after",
      "\nA step that runs finishes on the old code; the next one runs the new. A file that cannot be loaded leaves its moniker as it was.\nOnly the process at --url reloads: to the others that share its store send SIGHUP.",
    )
    .action(async (options: Connection & { json?: boolean }) =>
      (await import("./commands/reload.ts")).reload(connect(options), options),
    );

  command("rerun <session> <iteration>", "run a recorded step once more on today's code; nothing is written")
    .option("--model <provider/model>", "another model than the configured one")
    .option("--guidance <text>", "instead of what the step was told")
    .option("--state <json>", "instead of the state that the step started from")
    .action(async (session: string, iteration: string, options: RerunOptions & Connection) =>
      (await import("./commands/rerun.ts")).rerun(connect(options), session, iteration, options),
    );

  command("replay <session>", "run recorded steps once more on today's code and print what differs; nothing is written")
    .option("--from <iteration>", "the first step", wholeNumber, "0")
    .option("--to <iteration>", "the last step", wholeNumber)
    .option("--model <provider/model>", "another model than the configured one")
    .addHelpText(
      "after",
      "\nEach step gets the input that was recorded, not what the step before returns now: a difference does not spread to later steps.\nThe exit code is 1 if anything differs. Files of the workspace are not written; what a moniker does beyond that, it does again.",
    )
    .action(async (session: string, options: ReplayOptions & Connection) =>
      (await import("./commands/rerun.ts")).replay(connect(options), session, options),
    );
}

/** Commands over webhooks: docs/webhooks.md. */
function webhookCommands(command: AddCommand): void {
  const load = () => import("./commands/webhooks.ts");
  type Options = Connection & { json?: boolean };

  command("list", "list the webhooks").action(async (options: Options) =>
    (await load()).listWebhooks(connect(options), options),
  );
  command("add <webhook> <address>", "add one, which shows its secret once, or change where it leads")
    .option("--event <event>", "session.asks, session.ended or session.failed, repeatable; all by default", collect, [])
    .option("--agent <id>", "only of an agent's sessions")
    .addHelpText("after", "\nExample:\n  everstep webhooks add ops https://example.com/everstep --event session.asks")
    .action(async (webhook: string, address: string, options: AddWebhookOptions & Connection) =>
      (await load()).addWebhook(connect(options), webhook, address, options),
    );
  command("rotate-secret <webhook>", "give one a new secret; for a day the former one signs as well").action(
    async (webhook: string, options: Options) => (await load()).rotateSecret(connect(options), webhook, options),
  );
  command("remove <webhook>", "remove one with its deliveries").action(async (webhook: string, options: Options) =>
    (await load()).removeWebhook(connect(options), webhook, options),
  );
  command("deliveries <webhook>", "list what was sent and what is on its way, newest first")
    .option("--limit <number>", "how many at the most", wholeNumber, "20")
    .action(async (webhook: string, options: DeliveriesOptions & Connection) =>
      (await load()).deliveries(connect(options), webhook, options),
    );
  command("send-again <webhook> <delivery>", "send a delivery again, or now where it waits").action(
    async (webhook: string, delivery: string, options: Options) =>
      (await load()).sendAgain(connect(options), webhook, delivery, options),
  );
}

type ControlFlags = { json?: boolean; reason?: string; option?: string[] };
const LIFTED = "an option to change before it goes on, such as a limit that it reached: max_steps=100, repeatable";

const controlBody = ({ reason, option = [] }: ControlFlags) => ({
  ...(reason === undefined ? {} : { reason }),
  ...(option.length === 0 ? {} : { options: assignments(option) }),
});

const CONTROLS = [
  ["pause", "start no further step; the one that runs is kept"],
  ["resume", "go on, or try a failed step again"],
  ["destroy", "end a session for good"],
] as const;

function connect(options: Connection): ApiClient {
  endWithReader();
  return new ApiClient({ url: options.url, token: withToken(options).token, default_url: defaultUrl() });
}

function defaultUrl(): string {
  const port = process.env["EVERSTEP_PORT"];
  return process.env["EVERSTEP_URL"] ?? (port ? `http://127.0.0.1:${port}` : DEFAULT_URL);
}

const withToken = ({ token }: Connection): { token?: string } => {
  const given = token ?? (process.env["EVERSTEP_TOKEN"] || undefined);
  return given === undefined ? {} : { token: given };
};

const collect = (value: string, before: string[]): string[] => [...before, value];

function wholeNumber(value: string): string {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError("It must be a whole number.");
  return value;
}
