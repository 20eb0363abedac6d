import type { Rows } from "../rows.ts";
import type { GuestAnswer } from "../surroundings/guests.ts";

/**
 * What guests were told is true: the session exists, its step has the reply they received, and their texts were used once.
 */
export function checkGuests({ sessions, steps, actions }: Rows, answers: readonly GuestAnswer[]): string[] {
  const byRequest = new Map([...actions.values()].map((action) => [action.metadata["request_id"], action]));
  return answers.flatMap(({ surface, session_id, said, answer }) => {
    const name = `${said} of ${surface}`;
    if (surface === "agent-api") {
      const action = byRequest.get(said);
      return action?.receipt === "consumed" ? [] : [`${name} was answered, its action is ${JSON.stringify(action)}`];
    }
    if (session_id === null || !sessions.has(session_id))
      return [`${name} was answered by ${session_id}, which is unknown`];
    if (answer === null) return [];
    const texts = (steps.get(session_id) ?? []).map(({ text }) => text);
    return texts.includes(answer) && answer === said
      ? []
      : [`${name} was answered ${answer}, the steps say ${texts.join(", ")}`];
  });
}
