import { checkAnswers } from "./checks/answers.ts";
import { checkChildren } from "./checks/children.ts";
import { checkGuests } from "./checks/guests.ts";
import { checkGuidance } from "./checks/guidance.ts";
import { checkOnce } from "./checks/once.ts";
import { checkPauses } from "./checks/pauses.ts";
import { checkSessions } from "./checks/sessions.ts";
import { checkTimers } from "./checks/timers.ts";
import { checkTranscripts } from "./checks/transcripts.ts";
import { checkWebhooks } from "./checks/webhooks.ts";
import type { Ledger } from "./ledger.ts";
import type { Plan } from "./plan/plan.ts";
import type { Rows } from "./rows.ts";
import type { Delivered } from "./surroundings/bad-receiver.ts";
import type { GuestAnswer } from "./surroundings/guests.ts";

/** What outside parties saw, in addition to the clients of the product's own API. */
export type Witnesses = {
  /** The key of each payment that was started, once per start. */
  payments: readonly string[];
  delivered: readonly Delivered[];
  guests: readonly GuestAnswer[];
};

/** Every violation that the rows show, one line each. */
export function check(rows: Rows, ledger: Ledger, plan: Plan, witnesses: Witnesses): string[] {
  return [
    ...checkSessions(rows),
    ...checkGuidance(rows),
    ...checkPauses(rows),
    ...checkTranscripts(rows),
    ...checkAnswers(rows, ledger, plan),
    ...checkOnce(rows, witnesses.payments),
    ...checkTimers(rows),
    ...checkChildren(rows),
    ...checkWebhooks(rows, witnesses.delivered),
    ...checkGuests(rows, witnesses.guests),
  ];
}
