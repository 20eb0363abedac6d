import { createHash } from "node:crypto";
import { PlatformError } from "../platform/platform-client.ts";
import { isAgentJob, type Job, type Task } from "../state/jobs.ts";
import { failureOf } from "../transport/failure.ts";
import type { QuestionWorker } from "./question-worker.ts";
import { isSessionTask, SessionJobs } from "./session-jobs.ts";
import type { WatchList } from "./watch-list.ts";
import { finish, setAside, type WorkContext, wordsFor } from "./work-context.ts";

type ControlTask = Exclude<Task, { kind: "ask" | "save" | "load" }>;
type ControlJob = Job<ControlTask>;

/**
 * Jobs that do not wait for the agent's answers: they run at once, concurrently.
 *
 * MATRIX-JOBS-1  A reset waits for the saves requested before it.
 * MATRIX-JOBS-2  An unfinished job is done again after a restart; each kind of job is safe to repeat.
 * MATRIX-JOBS-3  A job that cannot be finished is set aside; if the state cannot be written, it is tried again later.
 */
export class ControlJobs {
  readonly #context: WorkContext;
  readonly #questions: QuestionWorker;
  readonly #sessions: SessionJobs;
  readonly #running = new Map<number, Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(context: WorkContext, questionWorker: QuestionWorker, watches: WatchList) {
    this.#context = context;
    this.#questions = questionWorker;
    this.#sessions = new SessionJobs(context, watches, this.#stopping.signal);
  }

  wake(): void {
    if (this.#stopping.signal.aborted) return;
    const open = this.#context.state.jobs.open();
    for (const job of open) {
      if (isAgentJob(job) || this.#running.has(job.position)) continue;
      // MATRIX-JOBS-1
      const savesFirst = open.some(({ task, position }) => task.kind === "save" && position < job.position);
      if (job.task.kind === "reset" && savesFirst) continue;
      this.#running.set(job.position, this.#perform(job as ControlJob));
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running.values());
  }

  async #perform(job: ControlJob): Promise<void> {
    const { log } = this.#context;
    const say = wordsFor(this.#context, job);
    try {
      await this.#do(job);
    } catch (error) {
      log.warn({ err: error, kind: job.task.kind }, "a command could not be carried out");
      const reason = error instanceof PlatformError ? error.message : failureReason(error);
      this.#end(job, error, say.runtime_unreachable(reason));
    } finally {
      this.#running.delete(job.position);
    }
  }

  /** MATRIX-JOBS-3 */
  #end(job: ControlJob, error: unknown, text: string): void {
    const ends = [() => finish(this.#context, job, text), () => setAside(this.#context, job, error)];
    for (const end of ends)
      try {
        return end();
      } catch (failure) {
        this.#context.log.error({ err: failure, kind: job.task.kind }, "a command could not be ended");
      }
  }

  async #do(job: ControlJob): Promise<void> {
    const { task } = job;
    if (isSessionTask(task)) return this.#sessions.perform({ ...job, task });
    switch (task.kind) {
      case "reset":
        return this.#reset(job);
      case "stop":
        return this.#stopAnswer(job);
      case "new_room":
        return this.#newRoom(job, task.name);
      case "context":
        return this.#contextSummary(job);
    }
    task satisfies never;
  }

  async #reset(job: ControlJob): Promise<void> {
    const { state, platform } = this.#context;
    const outcome = await platform.reset();
    finish(this.#context, job, wordsFor(this.#context, job).reset_outcome(outcome), () => {
      if (outcome.kind === "reset") state.chat(null).forget();
    });
  }

  /** Reports what the runtime knows about the chat, or else what the bot knows. The agent is not asked. */
  async #contextSummary(job: ControlJob): Promise<void> {
    const { state, platform } = this.#context;
    const { status } = platform;
    const chat = status === "away" ? null : await platform.chat(job.chat);
    const own = state.chat(job.chat).of(job.chat ?? platform.session_id);
    const text = wordsFor(this.#context, job).context({
      name: own.name,
      loaded: chat?.loaded ?? own.loaded,
      status: status === "ready" && chat ? chat.status : status,
      error: chat?.error ?? null,
      waiting: state.jobs.open().filter((open) => isAgentJob(open) && open.state === "queued").length,
      tokens_last: own.tokens_last,
      tokens_total: own.tokens_total,
      saves: state.saves.of(job.user_id),
    });
    finish(this.#context, job, text);
  }

  #stopAnswer(job: ControlJob): void {
    const isStopped = this.#questions.interrupt(job);
    finish(this.#context, job, isStopped ? null : wordsFor(this.#context, job).nothing_to_stop);
  }

  async #newRoom(job: ControlJob, name: string): Promise<void> {
    const say = wordsFor(this.#context, job);
    // The same command makes the same alias, and so only one room.
    const alias = `everstep-${createHash("sha256").update(job.event_id).digest("hex").slice(0, 16)}`;
    try {
      const room_id = await this.#context.homeserver.createRoom(name || "Everstep", say.room_topic, job.user_id, alias);
      finish(this.#context, job, say.new_room(`https://matrix.to/#/${encodeURIComponent(room_id)}`));
    } catch (error) {
      finish(this.#context, job, say.new_room_failed(failureReason(error)));
    }
  }
}

function failureReason(error: unknown): string {
  const failure = failureOf(error);
  return "reason" in failure ? failure.reason : failure.kind;
}
