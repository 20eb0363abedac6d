import { setTimeout as wait } from "node:timers/promises";
import type { Session } from "../src/domain/session.ts";
import { Api, pathOf, SHAPES } from "../test/server/api.ts";
import type { Violations } from "./violations.ts";

const LOOK_MS = 500;
/**
 * Milliseconds without a change after which what is left is stuck. A step whose model failed is retried after at most a
 * minute.
 */
const PATIENCE_MS = 100_000;
/** Quiet means that this many looks in a row found nothing left to do. */
const QUIET_LOOKS = 3;

/** Waits until every session has ended or rests, and destroys those that never would. */
export async function settle(url: string, violations: Violations): Promise<void> {
  const api = new Api(url);
  let before = "";
  let changed = performance.now();
  for (let quiet = 0; quiet < QUIET_LOOKS; ) {
    const sessions = await api.all("/api/sessions", "sessions", SHAPES.session);
    const open = await api.all("/api/actions", "actions", SHAPES.action, { processed: false });
    const restless = sessions.filter((session) => !rests(session));
    quiet = restless.length === 0 && open.length === 0 ? quiet + 1 : 0;
    for (const session of restless) await urge(api, session);
    const now = JSON.stringify([
      restless.map(({ session_id, status, iteration }) => [session_id, status, iteration]),
      open,
    ]);
    if (now !== before) changed = performance.now();
    before = now;
    if (performance.now() - changed > PATIENCE_MS) {
      for (const session of restless) {
        const { text } = await api.get(`/api/actions?session_id=${encodeURIComponent(session.session_id)}&limit=3`);
        violations.add(`stuck: ${describe(session)}, told last: ${text}`);
      }
      violations.add(...open.map((action) => `never ends: ${JSON.stringify(action)}`));
      return;
    }
    await wait(LOOK_MS);
  }
}

const rests = ({ status, pending_guidance, question, wake_at }: Session): boolean =>
  status === "done" ||
  status === "stopped" ||
  (status === "waiting" && pending_guidance.length === 0 && question === null && wake_at === null);

/** Monikers whose sessions never end by themselves. */
const ENDLESS = new Set(["joke", "schedule"]);

async function urge(api: Api, { session_id, status, moniker, question }: Session): Promise<void> {
  if (question?.choices && status === "waiting") {
    const { question_id, choices } = question;
    await api.post(pathOf("sessions", session_id, "answer"), { question_id, answer: choices[0]?.value ?? null });
    return;
  }
  const verb = status === "paused" ? "resume" : status === "error" || ENDLESS.has(moniker) ? "destroy" : null;
  if (verb !== null) await api.post(pathOf("sessions", session_id, verb));
}

const describe = ({ session_id, status, iteration, next_step_token, pause_reason, last_error }: Session): string =>
  `${session_id} is ${status} after iteration ${iteration}, before ${next_step_token}: ${JSON.stringify({ pause_reason, last_error })}`;
