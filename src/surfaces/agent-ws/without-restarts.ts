import type { AnswerEvent } from "./growing-answer.ts";

/**
 * An answer for a client that does not know `event_restart`. What was sent cannot be taken back, so after a restart nothing is sent
 * until the answer is complete: then the rest, if the answer begins with what was sent, otherwise the whole
 * answer in one piece, separated from the void beginning.
 */
export class WithoutRestarts {
  #sent = "";
  /** The answer since the last restart; null if there was none. */
  #held: string | null = null;

  take(event: AnswerEvent): AnswerEvent[] {
    switch (event.kind) {
      case "restart":
        this.#held = "";
        return [];
      case "chunk":
        if (this.#held === null) {
          this.#sent += event.text;
          return [event];
        }
        this.#held += event.text;
        return [];
      case "end": {
        const text = this.#held === null ? "" : this.#rest(this.#held);
        return text === "" ? [event] : [{ kind: "chunk", text }, event];
      }
      case "failed":
        return [event];
    }
    return event satisfies never;
  }

  #rest(answer: string): string {
    return answer.startsWith(this.#sent) ? answer.slice(this.#sent.length) : `\n\n${answer}`;
  }
}
