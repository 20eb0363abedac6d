import { type Action, newAction } from "../domain/action.ts";
import { isLive, LIVE_STATUSES, type Session } from "../domain/session.ts";
import type { Store } from "../store/store.ts";

const PAGE = 500;

/**
 * The effects of a session's end on other sessions, written in the commit that ends it.
 *
 * END-1  The session that started it learns how it ended, as guidance through the ordinary queue: exactly once, whoever owns
 *        that session. If that one has ended itself, the guidance bounces.
 * END-2  Destroying a session destroys the live sessions it started, except those with `outlives_parent`. They are looked up
 *        under the lock of that commit, when no more can be started.
 */
export async function endRows(
  store: Store,
  before: Session,
  after: Session,
  /** The last step's span, if steps are traced. */
  traceparent?: string,
): Promise<Action[]> {
  const actions: Action[] = [];
  if (isLive(before.status) && !isLive(after.status) && after.spawned_by)
    actions.push(...(await reportTo(store, after, after.spawned_by.session_id, traceparent)));
  const isDestroyed = ({ status, stop_reason }: Session) => status === "stopped" && stop_reason === "destroyed";
  if (isDestroyed(after) && !isDestroyed(before)) actions.push(...(await destroyChildren(store, after)));
  return actions;
}

/** END-1. */
async function reportTo(
  store: Store,
  session: Session,
  spawner_id: string,
  traceparent: string | undefined,
): Promise<Action[]> {
  const spawner_agent = await store.getSessionAgent(spawner_id);
  if (spawner_agent === null) return [];
  const { session_id, agent_id, status, stop_reason, result, last_error, iteration } = session;
  const child = { session_id, agent_id, status, stop_reason, result, error: last_error };
  return [
    newAction({
      action_type: "agent_input",
      agent_id: spawner_agent,
      session_id: spawner_id,
      payload: { guidance: { child } },
      metadata: { sent_by: { session_id, iteration }, ...(traceparent !== undefined && { traceparent }) },
    }),
  ];
}

/** END-2. */
async function destroyChildren(store: Store, { session_id, iteration }: Session): Promise<Action[]> {
  const actions: Action[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const { sessions } = await store.summarizeSessions({
      spawned_by: session_id,
      statuses: [...LIVE_STATUSES],
      limit: PAGE,
      offset,
    });
    for (const child of sessions)
      if (child.options.outlives_parent !== true && child.status !== "stopping")
        actions.push(
          newAction({
            action_type: "agent_destroy",
            agent_id: child.agent_id,
            session_id: child.session_id,
            payload: { reason: `its parent session ${session_id} was destroyed` },
            metadata: { sent_by: { session_id, iteration } },
          }),
        );
    if (sessions.length < PAGE) return actions;
  }
}
