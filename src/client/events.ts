import type { Schemas } from "./api-types.ts";

/** Text of a step while it runs, or the tool that it uses. A step that runs again starts over at `event_seq` 0. */
export type StepDelta = {
  session_id: string;
  iteration: number;
  event_seq: number;
  text: string;
  tool?: string;
  /** No more of the step's text is told while it runs; the step itself has all of it. */
  truncated?: true;
};

type EventPayloads = {
  agent_step: Schemas["Step"];
  agent_state_update: Schemas["Session"];
  agent_step_delta: StepDelta;
  action_update: Schemas["Action"];
  conversation_message: Schemas["Message"];
  conversation_message_delta: StepDelta & { conversation_id: string };
  /** Not everything that was missed can be told: these tables are to be read anew. */
  reset: { tables: ("sessions" | "conversations")[]; message: string };
};

type EventOf<Type extends keyof EventPayloads> = {
  [Name in Type]: {
    type: Name;
    data: EventPayloads[Name];
    /** Where the stream can be resumed after this event; null where this is no such place. */
    id: string | null;
  };
}[Type];

/** What happens to one session. */
export type SessionEvent = EventOf<"agent_step" | "agent_state_update" | "agent_step_delta" | "action_update">;
/** What happens anywhere. */
export type ServerEvent = EventOf<keyof EventPayloads>;
