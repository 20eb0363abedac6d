import type { Schemas } from "./api-types.ts";

/** Partial text of a running step, or the tool it is using. A retried step starts over at `event_seq` 0. */
export type StepDelta = {
  session_id: string;
  iteration: number;
  event_seq: number;
  text: string;
  tool?: string;
  /** No more partial text follows for this step; the step itself has all of it. */
  truncated?: true;
};

type EventPayloads = {
  agent_step: Schemas["Step"];
  agent_state_update: Schemas["Session"];
  agent_step_delta: StepDelta;
  action_update: Schemas["Action"];
  conversation_message: Schemas["Message"];
  conversation_message_delta: StepDelta & { conversation_id: string };
  /** Missed events cannot all be delivered: read these tables again. */
  reset: { tables: ("sessions" | "conversations")[]; message: string };
};

type EventOf<Type extends keyof EventPayloads> = {
  [Name in Type]: {
    type: Name;
    data: EventPayloads[Name];
    /** The cursor to resume the stream after this event; null if it cannot be resumed there. */
    id: string | null;
  };
}[Type];

export type SessionEvent = EventOf<"agent_step" | "agent_state_update" | "agent_step_delta" | "action_update">;
export type ServerEvent = EventOf<keyof EventPayloads>;
