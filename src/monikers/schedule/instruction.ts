import { z } from "zod";
import { isObject, type JsonValue } from "../../domain/json.ts";
import { guidanceText } from "../guidance.ts";

/** The instructions a schedule understands. */
export type Instruction =
  | { kind: "skip_runs"; count: number }
  | { kind: "skip_day"; days_from_now: 0 | 1 }
  | { kind: "child_ended"; session_id: string; status: string; error: string | null }
  | { kind: "unknown" };

const MOST_SKIPPED = 1000;
export const HELP = 'A schedule understands "skip", "skip 3", "skip today", "skip tomorrow" and {"skip": 3}.';

/** The report about a session it started. */
const endedSchema = z.object({
  child: z.object({ session_id: z.string(), status: z.string(), error: z.string().nullable().default(null) }),
});

export function readInstruction(guidance: JsonValue): Instruction {
  const ended = endedSchema.safeParse(guidance);
  if (ended.success) return { kind: "child_ended", ...ended.data.child };
  if (isObject(guidance) && "skip" in guidance) return skipRuns(guidance["skip"]);
  const text = guidanceText(guidance)
    ?.trim()
    .toLowerCase()
    .replace(/[.!]+$/, "");
  const [, what] = /^skip(?: +(?:the )?(next(?: (?:run|one))?|today|tomorrow|\d+)(?: runs?)?)?$/.exec(text ?? "") ?? [
    null,
    null,
  ];
  if (what === null) return { kind: "unknown" };
  if (what === "today") return { kind: "skip_day", days_from_now: 0 };
  if (what === "tomorrow") return { kind: "skip_day", days_from_now: 1 };
  return skipRuns(what === undefined || what.startsWith("next") ? 1 : Number(what));
}

function skipRuns(count: JsonValue | undefined): Instruction {
  const isCount = Number.isInteger(count) && Number(count) >= 1 && Number(count) <= MOST_SKIPPED;
  return isCount ? { kind: "skip_runs", count: Number(count) } : { kind: "unknown" };
}
