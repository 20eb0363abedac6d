import { isObject } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { Store } from "../store/store.ts";

/**
 * The moniker version that produced the state of a session's next step: null if not recorded, undefined if no version produced
 * it, because there is no step yet or because a fork set its state or moniker.
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
