import type { Rows } from "../rows.ts";
import type { Delivered } from "../surroundings/bad-receiver.ts";

/** Each end and each answered question was delivered at least once, and deliveries with the same id are equal. */
export function checkWebhooks({ sessions, steps }: Rows, delivered: readonly Delivered[]): string[] {
  const violations: string[] = [];
  const bodies = new Map<string, string>();
  for (const { id, body } of delivered) {
    if ((bodies.get(id) ?? body) !== body) violations.push(`delivery ${id} came with two bodies`);
    bodies.set(id, body);
  }
  const ended = new Set(delivered.filter(({ type }) => type === "session.ended").map(({ session_id }) => session_id));
  for (const { session_id, status } of sessions.values())
    if ((status === "done" || status === "stopped") && !ended.has(session_id))
      violations.push(`nobody was told that ${session_id} ended`);
  const asked = new Set(delivered.map(({ question_id }) => question_id));
  for (const question_id of answeredIn(steps))
    if (!asked.has(question_id)) violations.push(`question ${question_id} was answered, and nobody was told of it`);
  for (const { session_id } of delivered)
    if (!sessions.has(session_id)) violations.push(`a webhook told of ${session_id}, which is unknown`);
  return violations;
}

/** A question that closed before anybody saw it is not delivered, so only answered ones are required. */
function answeredIn(steps: Rows["steps"]): Set<string> {
  const said = [...steps.values()].flatMap((rows) => rows.flatMap(({ guidance }) => guidance));
  return new Set(said.flatMap((one) => (Object(one) as { question_id?: string }).question_id ?? []));
}
