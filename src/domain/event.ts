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
