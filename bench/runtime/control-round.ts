import { setTimeout as wait } from "node:timers/promises";
import { seededRandom } from "../stats.ts";
import type { ControlWatch } from "./control-watch.ts";
import type { OpenRuntime } from "./open-runtime.ts";

export const STEP_MS = 50;

/** Milliseconds; `started_late` counts the steps that started after the pause was accepted. */
type Pause = { answered: number; effective: number; started_late: number };
/** `resumes`: milliseconds to the next step's start; `lost`: steps that had started and were never committed. */
export type Round = { pauses: Pause[]; resumes: number[]; lost: number };

const random = seededRandom(7);

/**
 * Pauses every session, counts what still happens, and resumes them. Requests are sent at random moments within `within_ms`; 0
 * sends all in one turn.
 */
export async function runRound(
  runtime: OpenRuntime,
  watch: ControlWatch,
  ids: readonly string[],
  within_ms: number,
  whilePaused: () => void,
): Promise<Round> {
  const begun = performance.now();
  await watch.news.until("every session runs", () => ids.every((id) => watch.startsAfter(id, begun) > 0));
  // The sessions' steps tend to align, so each round pauses at another moment of a step.
  await wait(random() * STEP_MS);
  const delay = () => random() * within_ms;
  const paused = await Promise.all(ids.map((id) => send(runtime, "agent_pause", id, delay())));
  await watch.news.until("every pause is effective", () => paused.every((sent) => watch.effectiveAt(sent.action_id)));
  const isQuiet = () => ids.every((id) => watch.underWay(id) === 0);
  // Steps still in progress after this time count as lost.
  await watch.news.until("steps under way are committed", isQuiet, 5_000).catch(() => {});
  // A step that should not start would do so within the time of one step.
  await wait(STEP_MS * 2);
  whilePaused();
  const pauses = paused.map(({ session_id, action_id, submitted, accepted }) => ({
    answered: accepted - submitted,
    effective: (watch.effectiveAt(action_id) ?? Number.NaN) - accepted,
    started_late: watch.startsAfter(session_id, accepted),
  }));
  const lost = ids.reduce((sum, id) => sum + watch.underWay(id), 0);
  const resumed = await Promise.all(ids.map((id) => send(runtime, "agent_resume", id, delay())));
  const isStarted = ({ session_id, submitted }: Sent) => watch.startsAfter(session_id, submitted) > 0;
  await watch.news.until("every session runs again", () => resumed.every(isStarted));
  const resumes = resumed.map(({ session_id, submitted }) => watch.firstStartAfter(session_id, submitted) - submitted);
  return { pauses, resumes, lost };
}

type Sent = { session_id: string; action_id: string; submitted: number; accepted: number };

async function send(
  runtime: OpenRuntime,
  action_type: "agent_pause" | "agent_resume",
  session_id: string,
  delay_ms: number,
): Promise<Sent> {
  if (delay_ms > 0) await wait(delay_ms);
  const submitted = performance.now();
  const { action_id } = await runtime.submit({ action_type, session_id });
  return { session_id, action_id, submitted, accepted: performance.now() };
}
