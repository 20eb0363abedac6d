import type { Action } from "./action.ts";
import type { Message } from "./conversation.ts";
import type { Session } from "./session.ts";
import type { Step } from "./step.ts";

/** What just happened, as a committed row. */
export type CommittedEvent =
  | { kind: "step"; step: Step }
  | { kind: "session"; session: Session }
  | { kind: "action"; action: Action }
  | { kind: "message"; message: Message };

/** Text of a step while it runs, or a tool that it uses. A step that runs again starts over at `event_seq` 0. It is shown, never stored. */
export type StepDelta = {
  session_id: string;
  conversation_id: string | null;
  iteration: number;
  event_seq: number;
  text: string;
  /** The tool that the step now uses; there is no text then. */
  tool?: string;
  /** No more of the step's text is told while it runs: it came too fast, or some was lost. The step's row has all of it. */
  truncated?: true;
  /** The actions whose guidance the step was given. */
  action_ids: string[];
};
