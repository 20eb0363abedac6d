import type { Question } from "../../../domain/question.ts";
import type { Step } from "../../../domain/step.ts";
import { splitContent } from "../outgoing/split-content.ts";
import type { Watch } from "../state/watches.ts";
import { type WorkContext, wordsFor } from "./work-context.ts";

type Watching = {
  watch: Watch;
  steps: Step[];
  question: Question | null;
  ended: string | null;
  connection: Disposable;
  waitsFor: string | null;
};

const keyOf = ({ room_id, session_id }: Pick<Watch, "room_id" | "session_id">): string => `${room_id} ${session_id}`;

/**
 * Tells the steps of watched sessions in their rooms. What comes while the last message is still on its way is gathered into
 * the next one, so that a busy session does not flood the room. A step told and the place in the session are one transaction, and
 * so are a question and the note that it was asked.
 */
export class WatchList implements Disposable {
  readonly #context: WorkContext;
  readonly #watching = new Map<string, Watching>();

  constructor(context: WorkContext) {
    this.#context = context;
    context.sender.onSettled(() => this.#flush());
  }

  /** Follows what is to be watched and nothing else. */
  refresh(): void {
    const wanted = new Map(this.#context.state.watches.all().map((watch) => [keyOf(watch), watch]));
    for (const [key, { connection }] of this.#watching)
      if (!wanted.has(key)) {
        connection[Symbol.dispose]();
        this.#watching.delete(key);
      }
    for (const [key, watch] of wanted) if (!this.#watching.has(key)) this.#watching.set(key, this.#follow(watch));
  }

  [Symbol.dispose](): void {
    for (const { connection } of this.#watching.values()) connection[Symbol.dispose]();
    this.#watching.clear();
  }

  #follow(watch: Watch): Watching {
    const steps: Step[] = [];
    const connection = { [Symbol.dispose]() {} };
    const watching: Watching = { watch, steps, question: null, ended: null, waitsFor: null, connection };
    watching.connection = this.#context.platform.watch(watch.session_id, watch.after_iteration, {
      step: (step) => {
        steps.push(step);
        this.#flush();
      },
      asks: (question) => {
        if (this.#context.state.session_questions.isAsked({ ...watch, ...question })) return;
        watching.question = question;
        this.#flush();
      },
      ended: (status) => {
        watching.ended = status;
        this.#flush();
      },
    });
    return watching;
  }

  #flush(): void {
    const { state, sender } = this.#context;
    for (const [key, watching] of this.#watching) {
      const { watch, ended, question } = watching;
      const isOnItsWay = watching.waitsFor !== null && state.outbox.find(watching.waitsFor)?.outcome === null;
      if (isOnItsWay || (watching.steps.length === 0 && ended === null && question === null)) continue;
      const text = this.#textOf(watching);
      watching.question = null;
      const last = watching.steps.splice(0).findLast(({ status }) => status === "ok")?.iteration;
      state.transaction(() => {
        for (const content of splitContent(text, { is_notice: true }))
          watching.waitsFor = state.outbox.add(watch.room_id, content);
        if (question && watching.waitsFor !== null) this.#noteQuestion(watch, question, watching.waitsFor);
        if (ended !== null) {
          state.watches.end(watch);
          state.session_questions.end(watch);
        } else if (last !== undefined) state.watches.set({ ...watch, after_iteration: last });
      });
      if (ended !== null) {
        watching.connection[Symbol.dispose]();
        this.#watching.delete(key);
      }
      sender.wake();
    }
  }

  #noteQuestion({ room_id, session_id }: Watch, { question_id, choices }: Question, transaction_id: string): void {
    const values = choices?.map(({ value }) => value) ?? null;
    this.#context.state.session_questions.set({ room_id, session_id, question_id, transaction_id, choices: values });
  }

  #textOf({ watch, steps, question, ended }: Watching): string {
    const say = wordsFor(this.#context, watch);
    const lines = steps.map((step) =>
      say.step(watch.session_id, step.iteration, step.text ?? step.error ?? JSON.stringify(step.data)),
    );
    if (question) lines.push(say.asks(watch.session_id, question));
    return [...lines, ...(ended === null ? [] : [say.watch_over(watch.session_id, ended)])].join("\n\n");
  }
}
