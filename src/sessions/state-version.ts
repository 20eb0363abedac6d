import { isObject } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { Store } from "../store/store.ts";

/**
 * Which version of its moniker made the state that a session's next step gets: null where that was not recorded, undefined where
 * no version of the moniker made it, because there is no step yet, or because a fork was given its state or its moniker.
 */
export async function stateVersion(store: Store, session: Session): Promise<string | null | undefined> {
  const { session_id, iteration, parent_iteration, created_action_id } = session;
  if (iteration < 0) return undefined;
  if (iteration === parent_iteration) {
    const [action] = await store.getActions([created_action_id]);
    const payload = action?.payload;
    if (isObject(payload) && (payload["state"] !== undefined || payload["moniker"] !== undefined)) return undefined;
  }
  const range = { min_iteration: iteration, max_iteration: iteration };
  const [step] = await store.listSteps({ session_id, ...range, status: "ok", limit: 1, offset: 0 });
  return step?.moniker_version ?? null;
}
