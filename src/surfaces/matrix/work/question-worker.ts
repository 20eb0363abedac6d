import { addPrompt, loadPrompt, savePrompt } from "../../../agent-api/context-prompts.ts";
import { sleep } from "../../../concurrency/backoff.ts";
import { AgentFailedError, AgentLostError } from "../platform/platform-client.ts";
import { type AgentJob, type AgentTask, isAgentJob, requestIdOf } from "../state/jobs.ts";
import { isStateFault } from "../state/state-fault.ts";
import { AnswerStream } from "./answer-stream.ts";
import { finish, setAside, type WorkContext, wordsFor } from "./work-context.ts";

const PENDING_CHECK_MS = 500;
const FAILED_PAUSE_MS = 1000;
const MOST_FAILURES = 3;
/** A bot may be stopped for other reasons while it waits for an answer. */
const MOST_RESTARTS = 20;

/** Why a question is left before its answer: a person stopped it, or the bot stops. */
type Left = { kind: "stopped" } | { kind: "ending" };
type Answer =
  | { kind: "answered"; text: string; tokens_used: number }
  | { kind: "failed"; reason: string }
  | { kind: "stopped" };

/**
 * Passes people's questions to the agent, one at a time, in the order they arrived.
 *
 * MATRIX-QUESTIONS-1  A question ends in the transaction that stores its answer.
 * MATRIX-QUESTIONS-2  A question that may have been asked before, by a bot that died or over a lost connection, is looked up first; only
 *                     one that never arrived is asked again. So nothing has to be on disk before a question is asked.
 * MATRIX-QUESTIONS-3  A question that fails for its own reason, or that crashes the bot, is set aside, so that the next ones are asked.
 */
export class QuestionWorker {
  readonly #context: WorkContext;
  readonly #stopping = new AbortController();
  readonly #onDone: () => void;
  /** Jobs up to this one were left by an earlier run of the bot. */
  readonly #inherited: number;
  /** Jobs begun in this run and not done. */
  readonly #tried = new Set<number>();
  #wake = () => {};
  #running: Promise<void> | undefined;
  #current: { job: AgentJob; left: PromiseWithResolvers<Left> } | null = null;

  /** `onDone` is called after each job. */
  constructor(context: WorkContext, onDone: () => void) {
    this.#context = context;
    this.#onDone = onDone;
    this.#inherited = context.state.jobs.open().at(-1)?.position ?? 0;
  }

  start(): void {
    if (this.#running) return;
    const { state } = this.#context;
    state.transaction(() => state.jobs.restarted());
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#current?.left.resolve({ kind: "ending" });
    this.#wake();
    await this.#running;
  }

  wake(): void {
    this.#wake();
  }

  /** Stops the answer in flight in a room, or in a thread with its own chat. False if there is none. */
  interrupt({ room_id, chat }: Pick<AgentJob, "room_id" | "chat">): boolean {
    if (this.#current?.job.room_id !== room_id || this.#current.job.chat !== chat) return false;
    this.#current.left.resolve({ kind: "stopped" });
    return true;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const job = this.#context.state.jobs.open().find(isAgentJob);
      if (job) await this.#perform(job);
      else await woken;
    }
  }

  async #perform(job: AgentJob): Promise<void> {
    const left = Promise.withResolvers<Left>();
    this.#current = { job, left };
    const leaving = new AbortController();
    try {
      // MATRIX-QUESTIONS-3
      if (job.restarts > MOST_RESTARTS) return setAside(this.#context, job, new Error("the bot ended each time"));
      await Promise.race([this.#context.platform.ready(leaving.signal), left.promise]);
      if (this.#stopping.signal.aborted) return;
      using stream = new AnswerStream(this.#context, job);
      const answer = await Promise.race([this.#answer(job, stream, leaving.signal), left.promise]);
      leaving.abort();
      // A stopping bot leaves the question begun: the next run looks it up.
      if (answer.kind === "ending") return;
      if (answer.kind === "stopped") await this.#context.platform.stop(job.chat).catch(() => {});
      this.#conclude(job, stream, answer);
      this.#tried.delete(job.position);
    } catch (error) {
      await this.#failed(job, error);
    } finally {
      leaving.abort();
      this.#current = null;
      this.#onDone();
    }
  }

  /** MATRIX-QUESTIONS-3 */
  async #failed(job: AgentJob, error: unknown): Promise<void> {
    const { state, log } = this.#context;
    log.error({ err: error, event_id: job.event_id }, "a question could not be answered");
    try {
      if (!isStateFault(error)) {
        const failures = state.transaction(() => state.jobs.failed(job.position));
        if (failures >= MOST_FAILURES) return setAside(this.#context, job, error);
      }
    } catch (failure) {
      log.error({ err: failure }, "the bot's state cannot be written");
    }
    await sleep(FAILED_PAUSE_MS, this.#stopping.signal);
  }

  async #answer(job: AgentJob, stream: AnswerStream, signal: AbortSignal): Promise<Answer | Left> {
    const { platform } = this.#context;
    const text = promptOf(job.task);
    const request_id = requestIdOf(job);
    let mayBeKnown = job.position <= this.#inherited || this.#tried.has(job.position);
    let { session_id } = job;
    this.#tried.add(job.position);
    for (;;) {
      await platform.ready(signal);
      if (signal.aborted) return { kind: "ending" };
      if (mayBeKnown) {
        // MATRIX-QUESTIONS-2
        const recovery = await platform.recover({
          request_id,
          session_id: session_id ?? job.chat ?? platform.session_id,
        });
        if (recovery.kind === "answered" || recovery.kind === "failed") return recovery;
        if (recovery.kind === "pending") {
          await sleep(PENDING_CHECK_MS, signal);
          continue;
        }
      }
      if (signal.aborted) return { kind: "ending" };
      session_id = job.chat ?? platform.session_id;
      mayBeKnown = true;
      stream.restart();
      try {
        const answer = platform.ask(text, request_id, () => stream.restart(), job.chat);
        const first = answer.next();
        // Awaited below, unless the write before that fails.
        first.catch(() => {});
        // While the agent thinks.
        this.#begin(job, session_id);
        for (let next = await first; !next.done; next = await answer.next()) {
          if (signal.aborted) {
            await answer.return();
            return { kind: "ending" };
          }
          stream.push(next.value);
        }
        return { kind: "answered", text: stream.text, tokens_used: platform.last_tokens_used };
      } catch (error) {
        if (error instanceof AgentFailedError) return { kind: "failed", reason: error.message };
        if (!(error instanceof AgentLostError)) throw error;
      }
    }
  }

  #begin(job: AgentJob, session_id: string | null): void {
    const { state } = this.#context;
    state.transaction(() => {
      // The notice that it is queued is no longer needed.
      if (job.notice !== null) state.outbox.takeBack(job.notice);
      state.jobs.begin(job.position, session_id);
    });
  }

  #conclude(job: AgentJob, stream: AnswerStream, answer: Answer): void {
    const { state } = this.#context;
    const say = wordsFor(this.#context, job);
    const { task } = job;
    const chat = state.chat(job.chat);
    finish(this.#context, job, null, () => {
      if (answer.kind === "answered") {
        chat.belongTo(job.chat ?? this.#context.platform.session_id);
        chat.answered(answer.tokens_used);
      }
      if (task.kind === "ask") return this.#concludeAsk(job, stream, answer);
      const reason = answer.kind === "answered" ? answer.text : answer.kind === "failed" ? answer.reason : say.stopped;
      const isDone = answer.kind === "answered" && answer.text.includes(confirmationOf(task));
      if (task.kind === "load") {
        if (isDone) chat.loaded(task.name, task.adds ?? false);
        return stream.conclude(isDone ? say.loaded(task.name) : say.load_failed(task.name, reason), true);
      }
      if (isDone) {
        chat.saved(task.name);
        state.saves.record(job.user_id, task.name, new Date().toISOString());
        if (task.then_reset) state.jobs.add(job, { kind: "reset" });
        return stream.conclude(say.saved(task.name), true);
      }
      const failed = say.save_failed(task.name, reason);
      return stream.conclude(task.then_reset ? `${failed}\n\n${say.save_failed_no_reset}` : failed, true);
    });
  }

  #concludeAsk(job: AgentJob, stream: AnswerStream, answer: Answer): void {
    const say = wordsFor(this.#context, job);
    switch (answer.kind) {
      case "answered":
        return answer.text.trim() === ""
          ? stream.conclude(say.agent_silent, true)
          : stream.conclude(answer.text, false);
      case "failed":
        return stream.conclude(say.agent_failed(answer.reason), true);
      case "stopped":
        return stream.conclude(`${stream.text.trimEnd()}\n\n${say.stopped}`.trim(), stream.text === "");
    }
    answer satisfies never;
  }
}

function promptOf(task: AgentTask): string {
  switch (task.kind) {
    case "ask":
      return task.text;
    case "save":
      return savePrompt(task.name);
    case "load":
      return (task.adds ? addPrompt : loadPrompt)(task.name);
  }
  return task satisfies never;
}

const confirmationOf = ({ kind, name }: Exclude<AgentTask, { kind: "ask" }>): string =>
  `${kind === "save" ? "Saved" : "Loaded"}: ${name}`;
