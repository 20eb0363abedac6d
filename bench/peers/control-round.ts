import { setTimeout as wait } from "node:timers/promises";
import type { News } from "../runtime/news.ts";
import { seededRandom } from "../stats.ts";
import type { Peer } from "./peer.ts";
import type { StepRecord } from "./step-record.ts";

/** Milliseconds, one for each session, and numbers of steps. */
export type ControlRound = {
  accepted: number[];
  /** From the request until the peer reports that it is paused. */
  effective: number[];
  resumed: number[];
  /** Steps that started after the peer reported their session as paused. */
  started_late: number;
  /** Steps that were completed twice. */
  redone: number;
};

const STEP_MS = 50;
const random = seededRandom(7);

/** Pauses every session at some moment of its step, counts what still happens, and resumes them. */
export async function controlRound(
  control: NonNullable<Peer["control"]>,
  record: StepRecord,
  news: News,
  session_ids: readonly string[],
): Promise<ControlRound> {
  const pauses = await Promise.all(session_ids.map((id) => pauseOne(control, id)));
  // A step that should not start would do so within the time of a few steps.
  await wait(STEP_MS * 4);
  const late = pauses.flatMap(({ session_id, paused_at }) => record.startsAfter(session_id, paused_at));
  const resumed = await Promise.all(
    session_ids.map(async (id) => {
      await wait(random() * STEP_MS);
      const asked = performance.now();
      await control.resume(id);
      await news.until("a resumed session runs", () => record.startsAfter(id, asked).length > 0);
      return (record.startsAfter(id, asked)[0] as number) - asked;
    }),
  );
  await wait(STEP_MS * 4);
  return {
    accepted: pauses.map(({ accepted }) => accepted),
    effective: pauses.map(({ effective }) => effective),
    resumed,
    started_late: late.length,
    redone: record.redone(),
  };
}

async function pauseOne(control: NonNullable<Peer["control"]>, session_id: string) {
  await wait(random() * STEP_MS);
  const asked = performance.now();
  let accepted = Number.NaN;
  await control.pause(session_id, () => (accepted = performance.now() - asked));
  const paused_at = performance.now();
  return { session_id, accepted, effective: paused_at - asked, paused_at };
}
