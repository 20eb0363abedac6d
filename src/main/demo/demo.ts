import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { EverstepClient, type Schemas } from "../../client/client.ts";
import { VERSION } from "../../domain/version.ts";
import { asTyped, shellWord } from "../../surfaces/cli/as-typed.ts";
import { CommandError } from "../../surfaces/cli/client.ts";
import type { Style } from "../../surfaces/cli/output.ts";
import { linesOf, Narrator } from "./narrator.ts";
import { letterOf, OfficeFolder } from "./office-folder.ts";
import { ScriptedModel } from "./scripted-model.ts";
import { ServerProcess } from "./server-process.ts";
import { sideBySide } from "./side-by-side.ts";

export type DemoOptions = { fast?: boolean; folder?: string };

type Session = Schemas["Session"];
type Step = Schemas["Step"];

const TASK = "Read the invoices, book the unpaid ones, remind each customer, report.";
const GUIDANCE = "Put the total into the report.";
const OTHER_WORDS = "Send no letters: we call them.";
/** The server is killed during this invoice's reminder. */
const INVOICE = "19";
const COLUMN = 40;
/** Outlasts the outage by far: a person's client does not give up. */
const RETRIES = 100;

/**
 * An agent works in a folder; its server is killed in the middle of a tool call and started again; its session is forked. Only
 * the model is a script: the server is this program, the kill is SIGKILL, and the tools themselves count their calls.
 */
export async function demo({ fast = false, folder }: DemoOptions): Promise<void> {
  const office = await OfficeFolder.make(
    folder === undefined ? await mkdtemp(join(tmpdir(), "everstep-demo-")) : resolve(folder),
  );
  await using model = await ScriptedModel.open({ word_ms: fast ? 1 : 70 });
  const environment = { ...model.environment, DEMO_MAIL_MS: fast ? "1500" : "3000" };
  console.log(`everstep ${VERSION}: a demo without a network. The model is a script; the rest is the real thing.`);
  await using server = await ServerProcess.start({ folder: office.path, environment });
  const story = new Story({ office, model, server, pace_ms: fast ? 0 : 1500 });
  const session_id = await story.work();
  const action_id = await story.kill(session_id);
  await story.count(session_id);
  await story.decide(session_id, action_id);
  const fork_id = await story.fork(session_id);
  await story.leave([session_id, fork_id]);
}

type Parts = { office: OfficeFolder; model: ScriptedModel; server: ServerProcess; pace_ms: number };

/** One scene per method, each for a session that the previous one left. */
class Story {
  readonly #parts: Parts;
  readonly #client: EverstepClient;
  readonly #tell = new Narrator();
  /** The last step printed. */
  #printed = -1;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#client = new EverstepClient({ url: parts.server.url, retries: RETRIES });
  }

  /** Resolves in the middle of a tool call. */
  async work(): Promise<string> {
    this.#tell.scene("An agent with tools works in a folder");
    this.#tell.line("task", TASK, "magenta");
    const { session_id } = await this.#client.create({ agent_id: "clerk", moniker: "agent", params: { task: TASK } });
    const leaving = new AbortController();
    const printing = this.#print(session_id, leaving.signal);
    const written = this.#letterIsWritten(leaving.signal);
    await Promise.race([written, printing]);
    leaving.abort();
    await Promise.allSettled([printing, written]);
    for await (const step of this.#client.steps(session_id, this.#printed)) this.#printStep(step);
    this.#tell.line("tool", `own/send_reminder ${INVOICE} → wrote the letter, waits for the mail service …`, "cyan");
    return session_id;
  }

  /** The kill, guidance sent to a server that is down, and the restart. Returns the guidance's action. */
  async kill(session_id: string): Promise<string> {
    const { server, pace_ms } = this.#parts;
    this.#tell.scene("SIGKILL in the middle of that call");
    const { pid } = server;
    const signal = await server.kill();
    this.#tell.line("server", `process ${pid} is dead (${signal}); it could close nothing`, "red");
    const guided = this.#client.guide(session_id, GUIDANCE, { user_id: "ann" });
    guided.catch(() => {}); // It is awaited below.
    this.#tell.line("ann", `“${GUIDANCE}” (her client tries until it is taken)`, "magenta");
    await wait(pace_ms);
    const since = performance.now();
    await server.start();
    const took = ((performance.now() - since) / 1000).toFixed(1);
    this.#tell.line("server", `process ${server.pid} serves the same folder, ${took} s after its start`, "green");
    return (await guided).action_id;
  }

  /** Finished work is not repeated: shown by the tools' log and the model's count. */
  async count(session_id: string): Promise<void> {
    await this.#asks(session_id);
    const { office, model, pace_ms } = this.#parts;
    this.#tell.scene("What was done is not done again");
    for (const [call, times] of countsOf(await office.toolLog()))
      this.#tell.line("tool", `${call}: called ${times} ${times === 1 ? "time" : "times"}`, styleOf(times));
    const thoughts = (await this.#steps(session_id)).filter(({ step_token }) => step_token.startsWith("think/"));
    this.#tell.line("model", `asked ${model.answered} times for ${thoughts.length} thoughts`, "green");
    this.#tell.plain("The tools count for themselves, in tool-calls.log, which Everstep does not read.");
    await wait(pace_ms);
  }

  /** The agent asks about the call in doubt; the guidance has its receipt. */
  async decide(session_id: string, action_id: string): Promise<void> {
    this.#tell.scene("The call in doubt is asked about, and guidance counts once");
    const { office, pace_ms } = this.#parts;
    // Guidance that arrives while it asks makes it ask again; the answer is for the current question.
    await this.#until(action_id);
    const { question } = await this.#asks(session_id);
    this.#tell.line("agent", question?.text ?? "", "yellow");
    const letter = await office.letter(INVOICE);
    const answer =
      letter === null ? "again" : { choice: "result", result: `sent: the letter is in ${letterOf(INVOICE)}` };
    this.#tell.line(
      "you",
      letter === null
        ? "no letter was written: again"
        : `looked: the letter is in ${letterOf(INVOICE)}. So: it was sent.`,
      "magenta",
    );
    await wait(pace_ms);
    await this.#client.answer(session_id, answer, { user_id: "you", question_id: question?.question_id ?? "" });
    await this.#print(session_id);
    const receipt = await this.#client.request("GET /api/actions/{action_id}", { path: { action_id } });
    const steps = (await this.#steps(session_id)).filter(({ action_ids }) => action_ids.includes(action_id));
    this.#tell.line(
      "receipt",
      `Ann's words: ${receipt.receipt} by step ${receipt.consumed_iteration}; steps that got them: ${steps.length}.`,
      "magenta",
    );
    const counts = [...countsOf(await office.toolLog()).values()];
    const most = Math.max(...counts);
    this.#tell.line(
      "tools",
      `${counts.length} calls in their own log, each made ${most === 1 ? "once" : `up to ${most} times`}`,
      styleOf(most),
    );
    await wait(pace_ms);
  }

  /** A fork from before the letters. Returns the new session. */
  async fork(parent_id: string): Promise<string> {
    const parent = await this.#steps(parent_id);
    const at = parent.findLast(({ calls }) => calls.some(({ name }) => name === "own/book"))?.iteration ?? 0;
    this.#tell.scene(`Back to step ${at}, before any letter, with other words`);
    this.#tell.line("you", `“${OTHER_WORDS}”`, "magenta");
    const request = { iteration: at, guidance: OTHER_WORDS, user_id: "you" };
    const { session_id } = await this.#client.fork(parent_id, request);
    for await (const _ of this.#client.events(session_id, { after: at, until_ended: true }));
    const future = (steps: Step[]): string[] =>
      steps
        .filter(({ iteration }) => iteration > at)
        .flatMap((step) => linesOf(step).map(({ who, text }) => `${who}: ${text}`));
    const columns = [future(parent), future(await this.#steps(session_id))] as const;
    const heads = [
      ["as it went", "-".repeat(COLUMN)],
      ["with other words", "-".repeat(COLUMN)],
    ] as const;
    for (const line of sideBySide([...heads[0], ...columns[0]], [...heads[1], ...columns[1]], COLUMN))
      this.#tell.plain(line);
    return session_id;
  }

  async leave(session_ids: readonly string[]): Promise<void> {
    const { server, office } = this.#parts;
    this.#tell.scene("Look at it in the console");
    for (const session_id of session_ids) this.#tell.plain(`${server.url}/sessions/${session_id}`);
    if (process.stdout.isTTY && process.stdin.isTTY) {
      this.#tell.plain("Ctrl-C ends the server.");
      await new Promise((done) => process.once("SIGINT", done).once("SIGTERM", done));
    }
    this.#tell.plain(`All of it is kept: cd ${shellWord(office.path)} && ${asTyped()}`);
  }

  /** Prints a session's steps as they arrive, until it ends. */
  async #print(session_id: string, signal?: AbortSignal): Promise<void> {
    const following = { after: this.#printed, until_ended: true, ...(signal ? { signal } : {}) };
    for await (const event of this.#client.events(session_id, following)) {
      if (event.type === "agent_step") this.#printStep(event.data);
    }
  }

  #printStep(step: Step): void {
    this.#printed = step.iteration;
    this.#tell.step(step);
  }

  async #letterIsWritten(signal: AbortSignal): Promise<void> {
    while ((await this.#parts.office.letter(INVOICE)) === null) await wait(10, undefined, { signal });
  }

  async #steps(session_id: string): Promise<Step[]> {
    const steps: Step[] = [];
    for await (const step of this.#client.steps(session_id)) steps.push(step);
    return steps;
  }

  /** Waits until the session asks something. */
  async #asks(session_id: string): Promise<Session> {
    for await (const event of this.#client.events(session_id)) {
      if (event.type !== "agent_state_update") continue;
      if (event.data.question !== null) return event.data;
      if (event.data.ended_at !== null)
        throw new CommandError(`the agent ended instead of asking: ${event.data.last_error}`);
    }
    throw new CommandError("the server sent no more events of the session");
  }

  /** Waits until a step has consumed the guidance. */
  async #until(action_id: string): Promise<void> {
    const path = { action_id };
    while ((await this.#client.request("GET /api/actions/{action_id}", { path })).receipt !== "consumed")
      await wait(20);
  }
}

const countsOf = (calls: readonly string[]): ReadonlyMap<string, number> =>
  new Map(calls.map((call) => [call, calls.filter((one) => one === call).length]));

const styleOf = (times: number): Style => (times === 1 ? "green" : "red");
