import type { RuntimeEvent } from "../../events/events.ts";

/** The events of an answer: pieces, then its end, or a failure. After a restart the pieces so far are void. */
export type AnswerEvent =
  | { kind: "chunk"; text: string }
  | { kind: "restart" }
  | { kind: "end"; tokens_used: number }
  | { kind: "failed"; message: string };

const BETWEEN_STEPS = "\n\n";

/**
 * Assembles the answer to one question from a session's events: from the step that received the question through
 * the steps that follow it by themselves. The chunks since the last restart, joined, are exactly those steps' texts with separators
 * between them.
 */
export class GrowingAnswer {
  readonly #action_id: string;
  /** The text of the finished steps. */
  #text = "";
  /** The text of the running step so far. */
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
        // The session may still be working on what others said.
        if (!this.#isPart(action_ids, iteration)) return [];
        // The step is retried.
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

  /** The text of the running step is void; that of the finished steps stands. */
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
