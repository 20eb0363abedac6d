import { checkAnswers } from "./checks/answers.ts";
import { checkGuidance } from "./checks/guidance.ts";
import { checkPauses } from "./checks/pauses.ts";
import { checkSessions } from "./checks/sessions.ts";
import { checkTranscripts } from "./checks/transcripts.ts";
import type { Ledger } from "./ledger.ts";
import type { Plan } from "./plan/plan.ts";
import type { Rows } from "./rows.ts";

/** Everything that rows can show to be wrong, one line each. */
export function check(rows: Rows, ledger: Ledger, plan: Plan): string[] {
  return [
    ...checkSessions(rows),
    ...checkGuidance(rows),
    ...checkPauses(rows),
    ...checkTranscripts(rows),
    ...checkAnswers(rows, ledger, plan),
  ];
}
