import { isDeepStrictEqual } from "node:util";
import type { Rows } from "../rows.ts";

/** Invariant 5: a session in a conversation has exactly one message for each step with text, in the same order. */
export function checkTranscripts({ sessions, steps, messages }: Rows): string[] {
  const spoken = Map.groupBy(
    [...messages.values()].flat().filter(({ sender_type }) => sender_type === "agent"),
    ({ session_id }) => session_id ?? "",
  );
  const violations = [...sessions.values()].flatMap(({ session_id, conversation_id }) => {
    const own = (steps.get(session_id) ?? []).filter((step) => step.session_id === session_id);
    const texts = own.filter(({ status, text }) => status === "ok" && text !== null);
    const expected = conversation_id === null ? [] : texts.map(({ iteration, text }) => ({ iteration, text }));
    const said = (spoken.get(session_id) ?? []).map(({ iteration, text }) => ({ iteration, text }));
    if (isDeepStrictEqual(said, expected)) return [];
    return [`${session_id} said ${JSON.stringify(said)} in its conversation, its steps ${JSON.stringify(expected)}`];
  });
  for (const id of spoken.keys()) if (!sessions.has(id)) violations.push(`a session that is unknown spoke: ${id}`);
  const ids = [...messages.values()].flat().map(({ message_id }) => message_id);
  if (new Set(ids).size !== ids.length) violations.push("a message is in two transcripts, or in one twice");
  return violations;
}
