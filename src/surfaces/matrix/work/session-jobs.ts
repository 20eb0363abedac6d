import { createHash } from "node:crypto";
import { answerFromText } from "../../../domain/answer.ts";
import { isLive, type Session } from "../../../domain/session.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { openDialog } from "../outgoing/open-dialog.ts";
import type { OutgoingUI } from "../outgoing/outgoing.ts";
import { NOT_PUT, type Place } from "../state/dialogs.ts";
import { type Job, requestIdOf, type Task } from "../state/jobs.ts";
import { putQuestion } from "./put-question.ts";
import type { WatchList } from "./watch-list.ts";
import { finish, type WorkContext, wordsFor } from "./work-context.ts";

const SESSION_KINDS = [
  "agents",
  "inbox",
  "costs",
  "start",
  "ask_destroy",
  "watch",
  "fork",
  "guide",
  "answer",
  "control",
] as const satisfies Task["kind"][];
type SessionTask = Extract<Task, { kind: (typeof SESSION_KINDS)[number] }>;
type TaskOf<Kind extends SessionTask["kind"]> = Extract<SessionTask, { kind: Kind }>;
type SessionJob = Job<SessionTask>;

export const isSessionTask = (task: Task): task is SessionTask => SESSION_KINDS.some((kind) => kind === task.kind);

const SENT = "⏳";
/** Questions that `!inbox` shows as separate messages; each one and its reactions count towards the homeserver's rate limit. */
const MOST_QUESTIONS = 5;

/**
 * What operators do with the sessions of the runtime.
 *
 * STEER-1  Guidance and answers are submitted once: a job begun before a crash continues with its action, found by its
 *          id or by the id of the request.
 * STEER-2  Such a job ends when a step has used the guidance or the runtime refused it. Until then a reaction on the person's message says that it
 *          is pending. Reaction and action are written together, and so are the end of the job and the reaction that replaces the first.
 * STEER-3  The id of a started or forked session is derived from the command, so it is created once.
 */
export class SessionJobs {
  readonly #context: WorkContext;
  readonly #watches: WatchList;
  readonly #signal: AbortSignal;

  /** Jobs that wait for a receipt when the signal aborts are left to the next start. */
  constructor(context: WorkContext, watches: WatchList, signal: AbortSignal) {
    this.#context = context;
    this.#watches = watches;
    this.#signal = signal;
  }

  async perform(job: SessionJob): Promise<void> {
    const { task } = job;
    switch (task.kind) {
      case "agents":
        return this.#agents(job);
      case "inbox":
        return this.#inbox(job);
      case "costs":
        return this.#costs(job, task);
      case "start":
        return this.#start(job, task);
      case "ask_destroy":
        return this.#askDestroy(job, task);
      case "watch":
        return this.#onSession(job, task.session, async (session) => this.#watch(job, session));
      case "fork":
        return this.#onSession(job, task.session, async (session) => this.#fork(job, session, task));
      case "guide":
        return this.#onSession(job, task.session, async (session) => this.#guide(job, session, task));
      case "answer":
        return this.#onSession(job, task.session, async (session) => this.#answer(job, session, task));
      case "control":
        return this.#onSession(job, task.session, async (session) => this.#control(job, session, task.verb));
    }
    task satisfies never;
  }

  async #agents(job: SessionJob): Promise<void> {
    const sessions = await this.#context.platform.sessions();
    const lines = sessions.map(({ iteration, ...session }) => ({ ...session, steps: iteration + 1 }));
    finish(this.#context, job, wordsFor(this.#context, job).agents(lines));
  }

  async #inbox(job: SessionJob): Promise<void> {
    const { state } = this.#context;
    const say = wordsFor(this.#context, job);
    const { room_id, thread } = job;
    const sessions = await this.#context.platform.inbox();
    const asking = sessions.flatMap(({ session_id, question }) => (question ? [{ session_id, question }] : []));
    const shown = asking.slice(0, MOST_QUESTIONS);
    const rest = sessions.filter(({ session_id }) => !shown.some((each) => each.session_id === session_id));
    const text = sessions.length === 0 ? say.inbox_empty : rest.length === 0 ? null : say.inbox(rest);
    finish(this.#context, job, text, () => {
      for (const { session_id, question } of shown) putQuestion({ state, say, room_id, thread, session_id }, question);
    });
  }

  async #costs(job: SessionJob, { by }: TaskOf<"costs">): Promise<void> {
    const costs = await this.#context.platform.costs(by);
    finish(this.#context, job, wordsFor(this.#context, job).costs(costs));
  }

  async #start(job: SessionJob, { moniker, params }: TaskOf<"start">): Promise<void> {
    const say = wordsFor(this.#context, job);
    const session_id = sessionIdOf(job, moniker);
    const request = { session_id, agent_id: moniker, moniker, params };
    const outcome = await this.#context.platform.start(request, this.#sender(job));
    if (outcome.kind === "rejected") return finish(this.#context, job, say.runtime_unreachable(outcome.reason));
    this.#finishWatching(job, { session_id, after_iteration: -1 }, say.started(session_id));
  }

  async #fork(job: SessionJob, { session_id, agent_id }: Session, { iteration, text }: TaskOf<"fork">): Promise<void> {
    const say = wordsFor(this.#context, job);
    const forked = sessionIdOf(job, agent_id);
    const request = { session_id: forked, iteration, ...(text === "" ? {} : { guidance: text }) };
    const outcome = await this.#context.platform.fork(session_id, request, this.#sender(job));
    if (outcome.kind === "rejected") return finish(this.#context, job, say.runtime_unreachable(outcome.reason));
    const report = say.forked(session_id, iteration, forked);
    this.#finishWatching(job, { session_id: forked, after_iteration: iteration }, report);
  }

  async #onSession(job: SessionJob, name: string, work: (session: Session) => Promise<void>): Promise<void> {
    const say = wordsFor(this.#context, job);
    const matches = await this.#context.platform.findSessions(name);
    const [session] = matches;
    if (!session) return finish(this.#context, job, say.session_unknown(name));
    if (matches.length > 1) return finish(this.#context, job, say.session_ambiguous(name, matches.length));
    return work(session);
  }

  #watch(job: SessionJob, { session_id, iteration, status }: Session): void {
    if (!isLive(status)) return finish(this.#context, job, wordsFor(this.#context, job).watch_over(session_id, status));
    // The last step is shown as well, so that there is something to see at once.
    const watch = { session_id, after_iteration: iteration - 1 };
    this.#finishWatching(job, watch, wordsFor(this.#context, job).watching(session_id));
  }

  #finishWatching(job: SessionJob, watch: { session_id: string; after_iteration: number }, text: string): void {
    const { room_id, user_id, thread } = job;
    const { state } = this.#context;
    finish(this.#context, job, text, () => state.watches.set({ room_id, user_id, thread, ...watch }));
    this.#watches.refresh();
  }

  #sender(job: SessionJob): { user_id: string; request_id: string } {
    return { user_id: job.user_id, request_id: requestIdOf(job) };
  }

  async #guide(job: SessionJob, { session_id }: Session, { text }: TaskOf<"guide">): Promise<void> {
    const action_id = job.action_id ?? (await this.#context.platform.guide(session_id, text, this.#sender(job)));
    await this.#awaitReceipt(job, { session_id, action_id, receipt_on: job.event_id });
  }

  async #answer(job: SessionJob, session: Session, task: TaskOf<"answer">): Promise<void> {
    const { session_id } = session;
    const action_id = job.action_id ?? (await this.#submitAnswer(job, session, task));
    if (action_id === null) return finish(this.#context, job, wordsFor(this.#context, job).asks_nothing(session_id));
    const receipt_on = "receipt_on" in task ? (task.receipt_on ?? job.event_id) : job.event_id;
    await this.#awaitReceipt(job, { session_id, action_id, receipt_on });
  }

  /** Null if the question is no longer open. */
  async #submitAnswer(job: SessionJob, session: Session, task: TaskOf<"answer">): Promise<string | null> {
    const { platform } = this.#context;
    const { session_id, question } = session;
    const isOpen = question !== null && (task.question_id ?? question.question_id) === question.question_id;
    // STEER-1: this very answer may have closed it.
    if (!isOpen) return platform.submitted(session_id, requestIdOf(job));
    const answer = "choice" in task ? task.choice : answerFromText(question, task.text);
    return platform.answer(session_id, { answer, question_id: question.question_id }, this.#sender(job));
  }

  /** STEER-2 */
  async #awaitReceipt(
    job: SessionJob,
    { session_id, action_id, receipt_on }: { session_id: string; action_id: string; receipt_on: string },
  ): Promise<void> {
    const { state, platform, sender } = this.#context;
    const { room_id, position } = job;
    const say = wordsFor(this.#context, job);
    const sign =
      job.notice ??
      state.transaction(() => {
        const added = state.outbox.react(room_id, receipt_on, SENT, "preview");
        state.jobs.submitted(position, action_id, added);
        return added;
      });
    sender.wake();
    const receipt = await platform.receipt(session_id, action_id, this.#signal);
    if (receipt === null && this.#signal.aborted) return;
    const problem = receipt?.kind === "rejected" ? say.runtime_unreachable(receipt.reason) : null;
    finish(this.#context, job, problem, () => {
      if (receipt?.kind === "done") state.outbox.react(room_id, receipt_on, say.receipt(receipt.iteration));
      state.outbox.remove(room_id, sign);
    });
  }

  async #control(job: SessionJob, { session_id }: Session, verb: ControlVerb): Promise<void> {
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
  /** If the question was answered or superseded meanwhile, there is nothing left to ask. */
  async #askDestroy(job: SessionJob, { session: name, sent_at }: AskDestroyTask): Promise<void> {
    const { state, platform } = this.#context;
    const say = wordsFor(this.#context, job);
    const { user_id, room_id, thread } = job;
    const place = { user_id, room_id, sent_at, thread };
    const matches = await platform.findSessions(name).catch((error: unknown) => {
      if (this.#isNotPut(place, name)) state.transaction(() => state.dialogs.close(place));
      throw error;
    });
    if (!this.#isNotPut(place, name)) return finish(this.#context, job, null);
    const [session] = matches;
    const problem = !session
      ? say.session_unknown(name)
      : matches.length > 1
        ? say.session_ambiguous(name, matches.length)
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
}

type AskDestroyTask = TaskOf<"ask_destroy">;
type ControlVerb = TaskOf<"control">["verb"];

const destroyDialog = (session_id: string, say: Catalogue): OutgoingUI => ({
  kind: "ui",
  text: say.destroy_question(session_id),
  choices: [
    { command: "!yes", effect: say.effects.do_it },
    { command: "!no", effect: say.effects.leave },
  ],
  question: { kind: "destroy", session: session_id },
});

/** STEER-3 */
function sessionIdOf(job: SessionJob, name: string): string {
  const hash = createHash("sha256").update(requestIdOf(job)).digest("hex");
  return `${name.slice(0, 100)}-${hash.slice(0, 10)}`;
}
