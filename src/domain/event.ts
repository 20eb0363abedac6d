import type { Action } from "./action.ts";
import type { Message } from "./conversation.ts";
import type { Session } from "./session.ts";
import type { Step } from "./step.ts";

/** A row that was just committed. */
export type CommittedEvent =
  | { kind: "step"; step: Step }
  | { kind: "session"; session: Session }
  | { kind: "action"; action: Action }
  | { kind: "message"; message: Message };

/**
 * Partial text of a running step, or the tool it is using. A retried step starts over at `event_seq` 0. Shown to people, never
 * stored.
 */
export type StepDelta = {
  session_id: string;
  conversation_id: string | null;
  iteration: number;
  event_seq: number;
  text: string;
  /** The tool the step is using; `text` is empty then. */
  tool?: string;
  /** No more partial text follows for this step: it came too fast, or some was lost. The step's row has the whole text. */
  truncated?: true;
  /** The actions whose guidance the step received. */
  action_ids: string[];
};
