import type { Question } from "../../../domain/question.ts";
import type { SessionStatus } from "../../../domain/session.ts";
import type { Step } from "../../../domain/step.ts";
import { splitContent } from "../outgoing/split-content.ts";
import type { Watch } from "../state/watches.ts";
import { putQuestion } from "./put-question.ts";
import { type WorkContext, wordsFor } from "./work-context.ts";

type Watching = {
  watch: Watch;
  steps: Step[];
  /** The last step that was received or shown before. */
  last: number;
  question: Question | null;
  ended: SessionStatus | null;
  connection: Disposable;
  waitsFor: string | null;
};

const keyOf = ({ room_id, session_id }: Pick<Watch, "room_id" | "session_id">): string => `${room_id} ${session_id}`;

/**
 * Shows the steps of watched sessions in their rooms. Steps that arrive while the last message is still on its way are batched into
 * the next one, so that a busy session does not flood the room. A message and the session's new position are one transaction, and
 * so are a question and the record that it was asked.
 */
export class WatchList implements Disposable {
  readonly #context: WorkContext;
  readonly #watching = new Map<string, Watching>();

  constructor(context: WorkContext) {
    this.#context = context;
    context.sender.onSettled(() => this.#flush());
  }

  /** Follows exactly the sessions on the list. */
  refresh(): void {
    const watches = new Map(this.#context.state.watches.all().map((watch) => [keyOf(watch), watch]));
    for (const [key, { connection }] of this.#watching)
      if (!watches.has(key)) {
        connection[Symbol.dispose]();
        this.#watching.delete(key);
      }
    for (const [key, watch] of watches) if (!this.#watching.has(key)) this.#watching.set(key, this.#follow(watch));
  }

  [Symbol.dispose](): void {
    for (const { connection } of this.#watching.values()) connection[Symbol.dispose]();
    this.#watching.clear();
  }

  #follow(watch: Watch): Watching {
    const steps: Step[] = [];
    const connection = { [Symbol.dispose]() {} };
    const watching: Watching = {
      watch,
      steps,
      last: watch.after_iteration,
      question: null,
      ended: null,
      waitsFor: null,
      connection,
    };
    watching.connection = this.#context.platform.watch(watch.session_id, watch.after_iteration, {
      step: (step) => {
        steps.push(step);
        watching.last = step.iteration;
        this.#flush();
      },
      asks: (question) => {
        const isAsked = question && this.#context.state.session_questions.isAsked({ ...watch, ...question });
        watching.question = isAsked ? null : question;
        this.#flush();
      },
      ended: (status) => {
        watching.ended = status;
        this.#flush();
      },
      refused: (reason) => this.#tellRefusal(watch, reason),
    });
    return watching;
  }

  /** The watch stays on the list: the next start of the bot tries again. */
  #tellRefusal(watch: Watch, reason: string): void {
    const { state, sender } = this.#context;
    const say = wordsFor(this.#context, watch);
    for (const content of splitContent(say.watch_refused(watch.session_id, reason), { is_notice: true }))
      state.outbox.add(watch.room_id, content, { thread: watch.thread });
    sender.wake();
  }

  #flush(): void {
    const { state, sender } = this.#context;
    for (const [key, watching] of this.#watching) {
      const { watch, ended, last } = watching;
      // A question comes after the text of the step that asks it.
      const question = watching.question && watching.question.iteration <= last ? watching.question : null;
      const { room_id, session_id, thread } = watch;
      const isOnItsWay = watching.waitsFor !== null && state.outbox.find(watching.waitsFor)?.outcome === null;
      if (isOnItsWay || (watching.steps.length === 0 && ended === null && question === null)) continue;
      const text = this.#textOf(watching);
      if (question) watching.question = null;
      const lastShown = watching.steps.splice(0).findLast(({ status }) => status === "ok")?.iteration;
      state.transaction(() => {
        if (text !== "")
          for (const content of splitContent(text, { is_notice: true }))
            watching.waitsFor = state.outbox.add(room_id, content, { thread });
        if (question) {
          const say = wordsFor(this.#context, watch);
          watching.waitsFor = putQuestion({ state, say, room_id, thread, session_id }, question);
        }
        if (ended !== null) {
          state.watches.end(watch);
          state.session_questions.unwatch(watch);
        } else if (lastShown !== undefined) state.watches.set({ ...watch, after_iteration: lastShown });
      });
      if (ended !== null) {
        watching.connection[Symbol.dispose]();
        this.#watching.delete(key);
      }
      sender.wake();
    }
  }

  #textOf({ watch, steps, ended }: Watching): string {
    const say = wordsFor(this.#context, watch);
    const lines = steps.map((step) =>
      say.step(watch.session_id, step.iteration, step.text || (step.error ?? dataOf(step))),
    );
    return [...lines, ...(ended === null ? [] : [say.watch_over(watch.session_id, ended)])].join("\n\n");
  }
}

/** What a step without words did. */
const dataOf = ({ step_token, data }: Step): string =>
  data === null ? `\`${step_token}\`` : `\`${step_token}\` ${JSON.stringify(data)}`;
