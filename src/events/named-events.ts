import type { StepDelta } from "../domain/event.ts";
import type { Topic } from "../store/store.ts";
import type { RuntimeEvent } from "./events.ts";

/** An event as clients get it, over whatever they are connected by. */
export type NamedEvent = { name: string; payload: object };

/** What those who follow a topic are told of an event. */
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
