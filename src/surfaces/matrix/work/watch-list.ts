import type { Step } from "../../../domain/step.ts";
import { splitContent } from "../outgoing/split-content.ts";
import type { Watch } from "../state/watches.ts";
import { type WorkContext, wordsFor } from "./work-context.ts";

type Watching = { watch: Watch; steps: Step[]; ended: string | null; connection: Disposable; waitsFor: string | null };

const keyOf = ({ room_id, session_id }: Pick<Watch, "room_id" | "session_id">): string => `${room_id} ${session_id}`;

/**
 * Tells the steps of watched sessions in their rooms. What comes while the last message is still on its way is gathered into
 * the next one, so that a busy session does not flood the room. A step told and the place in the session are one transaction.
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
    const watching: Watching = { watch, steps, ended: null, waitsFor: null, connection: { [Symbol.dispose]() {} } };
    watching.connection = this.#context.platform.watch(watch.session_id, watch.after_iteration, {
      step: (step) => {
        steps.push(step);
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
      const { watch, ended } = watching;
      const isOnItsWay = watching.waitsFor !== null && state.outbox.find(watching.waitsFor)?.outcome === null;
      if (isOnItsWay || (watching.steps.length === 0 && ended === null)) continue;
      const text = this.#textOf(watching);
      const last = watching.steps.splice(0).findLast(({ status }) => status === "ok")?.iteration;
      state.transaction(() => {
        for (const content of splitContent(text, { is_notice: true }))
          watching.waitsFor = state.outbox.add(watch.room_id, content);
        if (ended !== null) state.watches.end(watch);
        else if (last !== undefined) state.watches.set({ ...watch, after_iteration: last });
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
      say.step(watch.session_id, step.iteration, step.text ?? step.error ?? JSON.stringify(step.data)),
    );
    return [...lines, ...(ended === null ? [] : [say.watch_over(watch.session_id, ended)])].join("\n\n");
  }
}
