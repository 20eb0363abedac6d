import type { StepDelta } from "../domain/event.ts";
import type { Topic } from "../store/store.ts";
import type { RuntimeEvent } from "./events.ts";

/** An event as clients receive it, over any transport. */
export type NamedEvent = { name: string; payload: object };

/** The events that followers of a topic receive. */
export function namedEvents(topic: Topic, event: RuntimeEvent): NamedEvent[] {
  switch (event.kind) {
    case "session":
      return [{ name: "agent_state_update", payload: event.session }];
    case "step":
      return [{ name: "agent_step", payload: event.step }];
    case "action":
      return [{ name: "action_update", payload: event.action }];
    case "message":
      return [{ name: "conversation_message", payload: event.message }];
    case "delta":
      return namedDeltas(topic, event.delta);
  }
  return event satisfies never;
}

function namedDeltas(
  topic: Topic,
  { session_id, conversation_id, iteration, event_seq, text, tool, truncated }: StepDelta,
): NamedEvent[] {
  const delta = {
    session_id,
    iteration,
    event_seq,
    text,
    ...(tool === undefined ? {} : { tool }),
    ...(truncated ? { truncated } : {}),
  };
  const events: NamedEvent[] = [];
  if (!("conversation_id" in topic)) events.push({ name: "agent_step_delta", payload: delta });
  if (!("session_id" in topic) && conversation_id !== null)
    events.push({ name: "conversation_message_delta", payload: { conversation_id, ...delta } });
  return events;
}
