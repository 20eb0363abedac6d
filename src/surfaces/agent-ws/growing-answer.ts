import type { RuntimeEvent } from "../../events/events.ts";

/** What a question brings: pieces of the answer, then its end, or a failure. */
export type AnswerEvent =
  | { kind: "chunk"; text: string }
  | { kind: "end"; tokens_used: number }
  | { kind: "failed"; message: string };

const BETWEEN_STEPS = "\n\n";

/**
 * The answer to one question, as a session's events tell it. It begins with the step that was given the question and goes on
 * through the steps that follow by themselves. The joined chunks are exactly those steps' texts, set apart from each other.
 */
export class GrowingAnswer {
  readonly #action_id: string;
  #text = "";
  /** What of it the step under way said. */
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
        if (event_seq === 0 && this.#ofStep !== "")
          return [{ kind: "failed", message: "the answer was cut short and started again" }];
        return truncated || tool !== undefined ? [] : this.#tell(text);
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
    if (!text.startsWith(this.#ofStep)) return [{ kind: "failed", message: "the answer changed while it was given" }];
    const rest = this.#tell(text.slice(this.#ofStep.length));
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
    const gap = this.#ofStep === "" && this.#text !== "" ? BETWEEN_STEPS : "";
    this.#ofStep += text;
    this.#text += gap + text;
    return [{ kind: "chunk", text: gap + text }];
  }
}
