import { z } from "zod";
import type { Rows } from "../rows.ts";

const firedSchema = z.object({ fired: z.number(), due: z.string(), at: z.string() });

/** Every timer fires once, in order, and never early. A forgotten one shows up as stuck in `settle`. */
export function checkTimers({ sessions, steps }: Rows): string[] {
  return [...sessions.values()]
    .filter(({ moniker }) => moniker === "timers")
    .flatMap(({ session_id, status, params }) => {
      const fired = (steps.get(session_id) ?? []).flatMap(({ data }) => firedSchema.safeParse(data).data ?? []);
      const numbers = fired.map((one) => one.fired);
      const violations = fired.flatMap(({ fired: n, due, at }) =>
        at < due ? [`${session_id}: timer ${n} was due at ${due} and fired at ${at}`] : [],
      );
      const wrong = numbers.some((n, at) => n !== at + 1);
      if (wrong) violations.push(`${session_id}: its timers fired as ${numbers.join(", ")}`);
      if (status === "done" && numbers.length !== params["times"])
        violations.push(`${session_id}: ${numbers.length} of ${Number(params["times"])} timers fired`);
      return violations;
    });
}
