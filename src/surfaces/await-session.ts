import type { Action } from "../domain/action.ts";
import { isFinal } from "../domain/receipt.ts";
import type { Session } from "../domain/session.ts";
import type { Events, RuntimeEvent } from "../events/events.ts";
import type { Store } from "../store/store.ts";

export type Waiting = { wait_ms: number; signal: AbortSignal };

/** How long to wait for a receipt: `settled` until the session has applied or rejected it, `used` until a step has used it. */
type Stage = "settled" | "used";

/** A session that asks rests as well; while it processes the answer its question is still set. */
const rests = ({ status }: Session): boolean => status !== "running" && status !== "stopping";

/**
 * The action once it has reached the stage, or at the timeout. A paused or failed session uses no guidance, so delivery is as
 * far as it gets there.
 */
export async function awaitAction(
  { store, events }: { store: Store; events: Events },
  { action_id, session_id }: { action_id: string; session_id: string },
  stage: Stage,
  waiting: Waiting,
): Promise<Action | null> {
  const reached = (action: Action | null): boolean =>
    action !== null && (stage === "settled" ? action.processed : isFinal(action));
  let action: Action | null = null;
  for await (const event of followed({ store, events }, session_id, waiting)) {
    if (event === null) action = await store.getAction(action_id);
    else if (event.kind === "action" && event.action.action_id === action_id) action = event.action;
    else if (event.kind !== "session" || !isStuck(event.session)) continue;
    if (reached(action)) return action;
    const session = event?.kind === "session" ? event.session : await store.getSession(session_id);
    if (action?.processed && session && isStuck(session)) return action;
  }
  return store.getAction(action_id);
}

const isStuck = ({ status }: Session): boolean => status === "paused" || status === "error";

/** The session once it rests with nothing left to use, asks something, or has ended; or at the timeout. */
export async function awaitRest(
  parts: { store: Store; events: Events },
  session_id: string,
  waiting: Waiting,
): Promise<Session | null> {
  const { store } = parts;
  for await (const event of followed(parts, session_id, waiting)) {
    if (event !== null && (event.kind !== "session" || !rests(event.session))) continue;
    const session = await store.getSession(session_id);
    if (!session || (rests(session) && !(await hasPendingWork(store, session)))) return session;
  }
  return store.getSession(session_id);
}

const hasPendingWork = async (store: Store, { session_id, status }: Session): Promise<boolean> =>
  status === "waiting" && (await store.unusedGuidance(session_id)).count > 0;

/** Yields null first, once it listens, so that a caller that reads then misses nothing; then events until the timeout. */
async function* followed(
  { events }: { store: Store; events: Events },
  session_id: string,
  { wait_ms, signal }: Waiting,
): AsyncGenerator<RuntimeEvent | null> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, wait_ms))]);
  const following = events.follow({ session_id }, ending);
  try {
    yield null;
    yield* following;
  } finally {
    await following.return(undefined);
  }
}
