import type { RuntimeEvent } from "../../events/events.ts";

/** What a question brings: pieces of the answer, then its end, or a failure. After a restart the pieces so far do not count. */
export type AnswerEvent =
  | { kind: "chunk"; text: string }
  | { kind: "restart" }
  | { kind: "end"; tokens_used: number }
  | { kind: "failed"; message: string };

const BETWEEN_STEPS = "\n\n";

/**
 * The answer to one question, as a session's events tell it. It begins with the step that was given the question and goes on
 * through the steps that follow by themselves. The joined chunks since the last restart are exactly those steps' texts, set apart
 * from each other.
 */
export class GrowingAnswer {
  readonly #action_id: string;
  /** Of the steps that ended. */
  #text = "";
  /** What the step under way said. */
  #ofStep = "";
  #lastIteration: number | null = null;
  #tokens = 0;

  constructor(action_id: string) {
    this.#action_id = action_id;
  }

  /** What an event means for the answer. */
  take(event: RuntimeEvent): AnswerEvent[] {
    switch (event.kind) {
      case "delta": {
        const { action_ids, iteration, event_seq, truncated, tool, text } = event.delta;
        // The session may still be at work on what others said.
        if (!this.#isPart(action_ids, iteration)) return [];
        // The step is tried again.
        const restart = event_seq === 0 ? this.#restart() : [];
        return truncated || tool !== undefined ? restart : [...restart, ...this.#tell(text)];
      }
      case "step":
        return this.#takeStep(event.step);
      case "action": {
        const { action_id, receipt, error, session_id } = event.action;
        const isLost = action_id === this.#action_id && receipt === "bounced";
        return isLost ? [{ kind: "failed", message: error ?? `session ${session_id} ended` }] : [];
      }
      case "session":
      case "message":
        return [];
    }
    return event satisfies never;
  }

  #takeStep(step: Extract<RuntimeEvent, { kind: "step" }>["step"]): AnswerEvent[] {
    if (step.status === "error") return [{ kind: "failed", message: step.error ?? "the step failed" }];
    if (!this.#isPart(step.action_ids, step.iteration)) return [];
    const text = step.text ?? "";
    const restart = text.startsWith(this.#ofStep) ? [] : this.#restart();
    const rest = [...restart, ...this.#tell(text.slice(this.#ofStep.length))];
    if (this.#ofStep !== "") this.#text += this.#gap + this.#ofStep;
    this.#ofStep = "";
    this.#lastIteration = step.iteration;
    this.#tokens += step.tokens_used;
    return step.directives?.go_on ? rest : [...rest, { kind: "end", tokens_used: this.#tokens }];
  }

  #isPart(action_ids: readonly string[], iteration: number): boolean {
    return this.#lastIteration === null ? action_ids.includes(this.#action_id) : iteration > this.#lastIteration;
  }

  #tell(text: string): AnswerEvent[] {
    if (text === "") return [];
    const gap = this.#ofStep === "" ? this.#gap : "";
    this.#ofStep += text;
    return [{ kind: "chunk", text: gap + text }];
  }

  /** What the step under way said does not count; what the steps before it said does. */
  #restart(): AnswerEvent[] {
    if (this.#ofStep === "") return [];
    this.#ofStep = "";
    const before: AnswerEvent[] = this.#text === "" ? [] : [{ kind: "chunk", text: this.#text }];
    return [{ kind: "restart" }, ...before];
  }

  get #gap(): string {
    return this.#text === "" ? "" : BETWEEN_STEPS;
  }
}
