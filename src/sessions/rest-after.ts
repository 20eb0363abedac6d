import { newId } from "../domain/ids.ts";
import { type Ask, questionOf } from "../domain/question.ts";
import type { Session } from "../domain/session.ts";
import type { Directives } from "../domain/step-frame.ts";

type Rest = Pick<Session, "question" | "wake_at" | "rests_since" | "started_attempt">;

/**
 * What a step leaves for its session: its question, how long to wait, and whether the next step may be repeated without asking.
 * `stateAsk` is a question that the session does not wait for.
 */
export function restAfter(
  directives: Directives | null,
  { at, iteration }: { at: string; iteration: number },
  stateAsk: Ask | null = null,
): Rest {
  const { wait, ask, once, go_on } = directives ?? {};
  const openAsk = ask ?? stateAsk;
  return {
    question: openAsk && questionOf(openAsk, { question_id: newId(), asked_at: at, iteration }),
    wake_at: wait?.until === undefined ? null : new Date(wait.until).toISOString(),
    rests_since: wait || ask ? at : null,
    started_attempt:
      once || go_on
        ? { iteration: iteration + 1, attempts: 0, ...(once && { once }), ...(go_on && { is_due: true as const }) }
        : null,
  };
}
