import type { Action } from "../domain/action.ts";
import { isFinal } from "../domain/receipt.ts";
import type { Session } from "../domain/session.ts";
import type { Events, RuntimeEvent } from "../events/events.ts";
import type { Store } from "../store/store.ts";

export type Waiting = { wait_ms: number; signal: AbortSignal };

/** Until when a receipt is waited for: `settled` is that the session has it or refused it, `used` that a step used it. */
type Stage = "settled" | "used";

/** One that asks rests as well; while it is on its way with an answer its question is still there. */
const rests = ({ status }: Session): boolean => status !== "running" && status !== "stopping";

/**
 * What became of an action, once it came to the stage, or when the time is over. A session that is paused or has failed uses
 * nothing, so what it has been given is as far as that gets.
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

/** The session once it rests with nothing left to use, asks something, or has ended; or when the time is over. */
export async function awaitRest(
  parts: { store: Store; events: Events },
  session_id: string,
  waiting: Waiting,
): Promise<Session | null> {
  const { store } = parts;
  for await (const event of followed(parts, session_id, waiting)) {
    if (event !== null && (event.kind !== "session" || !rests(event.session))) continue;
    const session = await store.getSession(session_id);
    if (!session || (rests(session) && !(await isAboutToGoOn(store, session)))) return session;
  }
  return store.getSession(session_id);
}

const isAboutToGoOn = async (store: Store, { session_id, status }: Session): Promise<boolean> =>
  status === "waiting" && (await store.unusedGuidance(session_id)).count > 0;

/** First null, when it listens, so that whoever looks then misses nothing; then what happens until the time is over. */
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
