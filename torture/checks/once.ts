import type { JsonValue } from "../../src/domain/json.ts";
import type { Step } from "../../src/domain/step.ts";
import type { Rows } from "../rows.ts";

/**
 * Nothing happens twice without consent: each payment was started at most once, plus once for each time people answered
 * "again" to the question about it. If a step has its result, it was made.
 */
export function checkOnce({ steps, sessions }: Rows, payments: readonly string[]): string[] {
  const times = new Map<string, number>();
  for (const key of payments) times.set(key, (times.get(key) ?? 0) + 1);
  const again = new Map<string, number>();
  const made = new Set<string>();
  for (const { session_id } of sessions.values()) {
    const own = (steps.get(session_id) ?? []).filter((step) => step.session_id === session_id && step.status === "ok");
    for (const [at, step] of own.entries()) {
      const key = keyIn(own[at - 1]);
      if (key !== null && step.guidance.some(isAgain)) again.set(key, (again.get(key) ?? 0) + 1);
      for (const paid of paidIn(step)) made.add(paid);
    }
  }
  const twice = [...times].filter(([key, count]) => count > 1 + (again.get(key) ?? 0));
  return [
    ...twice.map(
      ([key, count]) =>
        `${key} was paid ${count} times, and asked for again ${again.get(key) ?? 0} times: ${evidenceOf(key, steps)}`,
    ),
    ...[...made].filter((key) => !times.has(key)).map((key) => `${key} has a result and was never made`),
  ];
}

/** The steps that made the payment or asked about it. */
function evidenceOf(key: string, steps: Rows["steps"]): string {
  const own = [...steps.values()].flat().filter((step) => JSON.stringify(inputsOf(step)).includes(JSON.stringify(key)));
  return own.map(({ id, step_token, attempts, status }) => `${id} ${step_token} ${status} ${attempts}`).join("; ");
}

const inputsOf = ({ calls, directives }: Step): unknown => [calls.map(({ input }) => input), directives?.ask?.about];

/** The payment that a step's question is about. */
function keyIn(step: Step | undefined): string | null {
  const about = Object(step?.directives?.ask?.about) as { key?: string; args?: { key?: string } };
  return about.key ?? about.args?.key ?? null;
}

function isAgain(said: JsonValue): boolean {
  return (Object(said) as { answer?: JsonValue }).answer === "again";
}

const paidIn = ({ calls }: Step): string[] =>
  calls.flatMap(({ output }) => (typeof output === "string" ? (/^paid (.+ call \d+)$/.exec(output)?.[1] ?? []) : []));
