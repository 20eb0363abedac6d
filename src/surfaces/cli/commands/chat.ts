import { createInterface, type Interface } from "node:readline/promises";
import { z } from "zod";
import { AgentApi, AgentApiError } from "../../../agent-api/agent-api.ts";
import { addPrompt, loadPrompt, safeName, savePrompt } from "../../../agent-api/context-prompts.ts";
import { asTyped } from "../as-typed.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { MarkdownLines } from "../markdown.ts";
import { coloured } from "../output.ts";

export type ChatOptions = { url: string; token?: string };

const HELP = `/save [name]   save the conversation as contexts/NAME.md in the workspace
/load name     use a saved conversation as background, in place of what was loaded before
/load +name    the same, in addition to what was loaded before
/reset         start over; the old session keeps its history
/context       show what is loaded and what the last answer cost
/quit          leave`;

/** A terminal chat with the agent behind AgentApi. Lines from a pipe are sent one after the other. */
export async function chat(client: ApiClient, { url, token }: ChatOptions): Promise<void> {
  const api = new AgentApi("terminal", agentUrl(url), {
    ...(token === undefined ? {} : { token }),
    on_disconnect: () => console.error(coloured("yellow", "connection lost; reconnecting…")),
  });
  try {
    await api.connect();
  } catch (error) {
    await api.close();
    throw new CommandError(`${(error as Error).message}; start it with \`${asTyped()} serve\``);
  }
  const isTerminal = process.stdin.isTTY;
  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
    terminal: isTerminal,
    historySize: 1000,
    prompt: coloured("green", "you> "),
  });
  if (isTerminal) console.log("Say something; /help lists the commands, Ctrl-D leaves.");
  try {
    await converse(lines, isTerminal, new Conversation(api, client));
  } finally {
    lines.close();
    await api.close();
  }
}

async function converse(lines: Interface, isTerminal: boolean, conversation: Conversation): Promise<void> {
  if (isTerminal) lines.prompt();
  for await (const line of lines) {
    const text = line.trim();
    if (text === "/quit") return;
    if (text !== "") await conversation.take(text);
    if (isTerminal) lines.prompt();
  }
}

class Conversation {
  readonly #api: AgentApi;
  readonly #client: ApiClient;
  #name = "none";
  #tokens = 0;

  constructor(api: AgentApi, client: ApiClient) {
    this.#api = api;
    this.#client = client;
  }

  async take(text: string): Promise<void> {
    const [command = "", ...rest] = text.split(/\s+/);
    const name = rest.join(" ");
    switch (command) {
      case "/help":
        return console.log(HELP);
      case "/save":
        return this.#context(name || automaticName(), savePrompt);
      case "/load":
        return name === ""
          ? console.log("/load needs the name of a saved conversation")
          : this.#context(name.replace(/^\+/, ""), name.startsWith("+") ? addPrompt : loadPrompt);
      case "/reset":
        await this.#client.post(z.object({ status: z.string() }), "/reset");
        this.#name = "none";
        return console.log("The chat starts over.");
      case "/context":
        return console.log(
          `context: ${this.#name} · session ${this.#api.session_id ?? "?"} · last answer ${this.#api.last_tokens_used} tokens, ${this.#tokens} in all`,
        );
      default:
        return this.#ask(text);
    }
  }

  async #context(name: string, prompt: (name: string) => string): Promise<void> {
    const problem = safeName(name);
    if (problem) return console.log(problem);
    await this.#ask(prompt(name));
    this.#name = name;
  }

  async #ask(text: string): Promise<void> {
    let markdown = new MarkdownLines(process.stdout.isTTY);
    const on_restart = (): void => {
      process.stdout.write(markdown.end());
      console.error(coloured("yellow", "(the answer was interrupted; it starts over)"));
      markdown = new MarkdownLines(process.stdout.isTTY);
    };
    // Piped output cannot be taken back, so it only gets the final answer.
    const options = process.stdout.isTTY ? { on_restart } : {};
    try {
      for await (const piece of this.#api.sendMessage(text, options)) process.stdout.write(markdown.push(piece));
      process.stdout.write(markdown.end());
      this.#tokens += this.#api.last_tokens_used;
    } catch (error) {
      process.stdout.write(markdown.end());
      if (!(error instanceof AgentApiError)) throw error;
      console.error(coloured("red", `no answer: ${error.message}`));
    }
  }
}

const automaticName = (): string =>
  `context-${new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-")}`;

function agentUrl(url: string): string {
  const target = new URL("/agent_ws/", url);
  target.protocol = target.protocol === "https:" ? "wss:" : "ws:";
  return target.href;
}
