import { createHash } from "node:crypto";
import { answerFromText } from "../../../domain/answer.ts";
import { isLive, type Session } from "../../../domain/session.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { openDialog } from "../outgoing/open-dialog.ts";
import type { OutgoingUI } from "../outgoing/outgoing.ts";
import { PlatformError } from "../platform/platform-client.ts";
import { NOT_PUT, type Place } from "../state/dialogs.ts";
import { isAgentJob, type Job, requestIdOf, type Task } from "../state/jobs.ts";
import { failureOf } from "../transport/failure.ts";
import type { QuestionWorker } from "./question-worker.ts";
import type { WatchList } from "./watch-list.ts";
import { finish, setAside, type WorkContext, wordsFor } from "./work-context.ts";

type ControlTask = Exclude<Task, { kind: "ask" | "save" | "load" }>;
type ControlJob<Kind extends ControlTask["kind"] = ControlTask["kind"]> = Job<Extract<ControlTask, { kind: Kind }>>;

/**
 * Work that does not wait for the agent's answers: it is done as it comes, side by side.
 *
 * J1  A reset waits for saves that were asked for before it: what was to be kept is kept.
 * J2  What was begun and not ended is done again after a restart; each kind of work is safe to be done twice.
 * J3  What cannot be ended is set aside; where the state cannot be written it stays, and is done at the next occasion.
 */
export class ControlJobs {
  readonly #context: WorkContext;
  readonly #questions: QuestionWorker;
  readonly #watches: WatchList;
  readonly #running = new Map<number, Promise<void>>();
  #isStopped = false;

  constructor(context: WorkContext, questionWorker: QuestionWorker, watches: WatchList) {
    this.#context = context;
    this.#questions = questionWorker;
    this.#watches = watches;
  }

  wake(): void {
    if (this.#isStopped) return;
    const open = this.#context.state.jobs.open();
    for (const job of open) {
      if (isAgentJob(job) || this.#running.has(job.position)) continue;
      // J1
      const savesFirst = open.some(({ task, position }) => task.kind === "save" && position < job.position);
      if (job.task.kind === "reset" && savesFirst) continue;
      this.#running.set(job.position, this.#perform(job as ControlJob));
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
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

  /** J3 */
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
    switch (task.kind) {
      case "reset":
        return this.#reset(job);
      case "stop":
        return this.#stopAnswer(job);
      case "new_room":
        return this.#newRoom(job, task.name);
      case "context":
        return this.#contextFacts(job);
      case "agents":
        return this.#agents(job);
      case "ask_destroy":
        return this.#askDestroy(job, task);
      case "watch":
        return this.#onSession(job, task.session, async (session) => this.#watch(job, session));
      case "guide":
        return this.#onSession(job, task.session, async (session) => this.#guide(job, session, task.text));
      case "answer":
        return this.#onSession(job, task.session, async (session) => this.#answer(job, session, task));
      case "control":
        return this.#onSession(job, task.session, async (session) => this.#control(job, session, task.verb));
    }
    task satisfies never;
  }

  async #reset(job: ControlJob): Promise<void> {
    const { state, platform } = this.#context;
    const outcome = await platform.reset();
    finish(this.#context, job, wordsFor(this.#context, job).reset_outcome(outcome), () => {
      if (outcome.kind === "reset") state.chat.forget();
    });
  }

  /** What the runtime knows of the chat counts; where it cannot tell, what this bot knows does. The agent is not asked. */
  async #contextFacts(job: ControlJob): Promise<void> {
    const { state, platform } = this.#context;
    const { session_id, status } = platform;
    const chat = status === "away" ? null : await platform.chat();
    const own = state.chat.of(session_id);
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

  /** Where the question was answered or superseded meanwhile, there is nothing left to ask. */
  async #askDestroy(job: ControlJob, { session: name, sent_at }: AskDestroyTask): Promise<void> {
    const { state, platform } = this.#context;
    const say = wordsFor(this.#context, job);
    const { user_id, room_id } = job;
    const place = { user_id, room_id, sent_at };
    const found = await platform.findSessions(name).catch((error: unknown) => {
      if (this.#isNotPut(place, name)) state.transaction(() => state.dialogs.close(place));
      throw error;
    });
    if (!this.#isNotPut(place, name)) return finish(this.#context, job, null);
    const [session] = found;
    const problem = !session
      ? say.session_unknown(name)
      : found.length > 1
        ? say.session_ambiguous(name, found.length)
        : isLive(session.status) || session.status === "error"
          ? null
          : say.watch_over(session.session_id, session.status);
    if (!session || problem !== null) return finish(this.#context, job, problem, () => state.dialogs.close(place));
    const superseded = state.dialogs.current(place)?.before ?? null;
    finish(this.#context, job, null, () =>
      openDialog(state, say, place, { ...destroyDialog(session.session_id, say), superseded }),
    );
  }

  #isNotPut(place: Place, session: string): boolean {
    const dialog = this.#context.state.dialogs.current(place);
    return (
      dialog?.transaction_id === NOT_PUT && dialog.question.kind === "destroy" && dialog.question.session === session
    );
  }

  #stopAnswer(job: ControlJob): void {
    const isStopped = this.#questions.interrupt(job.room_id);
    finish(this.#context, job, isStopped ? null : wordsFor(this.#context, job).nothing_to_stop);
  }

  async #newRoom(job: ControlJob, name: string): Promise<void> {
    const say = wordsFor(this.#context, job);
    // The same command makes the same alias, so that it makes one room only.
    const alias = `everstep-${createHash("sha256").update(job.event_id).digest("hex").slice(0, 16)}`;
    try {
      const room_id = await this.#context.homeserver.createRoom(name || "Everstep", say.room_topic, job.user_id, alias);
      finish(this.#context, job, say.new_room(`https://matrix.to/#/${encodeURIComponent(room_id)}`));
    } catch (error) {
      finish(this.#context, job, say.new_room_failed(failureReason(error)));
    }
  }

  async #agents(job: ControlJob): Promise<void> {
    const sessions = await this.#context.platform.sessions();
    const lines = sessions.map(({ iteration, ...session }) => ({ ...session, steps: iteration + 1 }));
    finish(this.#context, job, wordsFor(this.#context, job).agents(lines));
  }

  async #onSession(job: ControlJob, name: string, work: (session: Session) => Promise<void>): Promise<void> {
    const say = wordsFor(this.#context, job);
    const found = await this.#context.platform.findSessions(name);
    const [session] = found;
    if (!session) return finish(this.#context, job, say.session_unknown(name));
    if (found.length > 1) return finish(this.#context, job, say.session_ambiguous(name, found.length));
    return work(session);
  }

  #watch(job: ControlJob, { session_id, iteration, status }: Session): void {
    const { room_id, user_id } = job;
    if (!isLive(status)) return finish(this.#context, job, wordsFor(this.#context, job).watch_over(session_id, status));
    finish(this.#context, job, wordsFor(this.#context, job).watching(session_id), () =>
      // The last step is told as well, so that there is something to see at once.
      this.#context.state.watches.set({ room_id, session_id, user_id, after_iteration: iteration - 1 }),
    );
    this.#watches.refresh();
  }

  async #guide(job: ControlJob, { session_id }: Session, text: string): Promise<void> {
    const say = wordsFor(this.#context, job);
    const outcome = await this.#context.platform.guide(session_id, text, {
      user_id: job.user_id,
      request_id: requestIdOf(job),
    });
    finish(
      this.#context,
      job,
      outcome.kind === "done" ? say.guided(session_id) : say.runtime_unreachable(outcome.reason),
    );
  }

  async #answer(job: ControlJob, { session_id, question }: Session, task: AnswerTask): Promise<void> {
    const say = wordsFor(this.#context, job);
    const isOpen = question !== null && (!("question_id" in task) || task.question_id === question.question_id);
    if (!isOpen) return finish(this.#context, job, say.asks_nothing(session_id));
    const answer = "choice" in task ? task.choice : answerFromText(question, task.text);
    const outcome = await this.#context.platform.answer(
      session_id,
      { answer, question_id: question.question_id },
      { user_id: job.user_id, request_id: requestIdOf(job) },
    );
    finish(
      this.#context,
      job,
      outcome.kind === "done" ? say.answered(session_id) : say.runtime_unreachable(outcome.reason),
    );
  }

  async #control(job: ControlJob, { session_id }: Session, verb: ControlVerb): Promise<void> {
    const say = wordsFor(this.#context, job);
    const outcome = await this.#context.platform.control(session_id, verb, job.user_id);
    finish(
      this.#context,
      job,
      outcome.kind === "done"
        ? say.controlled(verb, session_id)
        : say.control_rejected(verb, session_id, outcome.reason),
    );
  }
}

type AnswerTask = Extract<ControlTask, { kind: "answer" }>;
type AskDestroyTask = Extract<ControlTask, { kind: "ask_destroy" }>;
type ControlVerb = Extract<ControlTask, { kind: "control" }>["verb"];

const destroyDialog = (session_id: string, say: Catalogue): OutgoingUI => ({
  kind: "ui",
  text: say.destroy_question(session_id),
  choices: [
    { command: "!yes", effect: say.effects.do_it },
    { command: "!no", effect: say.effects.leave },
  ],
  question: { kind: "destroy", session: session_id },
});

function failureReason(error: unknown): string {
  const failure = failureOf(error);
  return "reason" in failure ? failure.reason : failure.kind;
}
