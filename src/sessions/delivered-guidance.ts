import type { Action } from "../domain/action.ts";
import { isFinal } from "../domain/receipt.ts";
import type { Store } from "../store/store.ts";

/** Caches the actions whose guidance a session has and no step has used: the step that uses it changes their receipts. */
export class DeliveredGuidance {
  readonly #store: Store;
  readonly #actions = new Map<string, Action>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Records actions that were just committed. */
  update(actions: Action[]): void {
    for (const action of actions) {
      if (action.processed && !isFinal(action)) this.#actions.set(action.action_id, action);
      else this.#actions.delete(action.action_id);
    }
  }

  /** In the order of `ids`. */
  async get(ids: string[]): Promise<Action[]> {
    if (ids.length === 0) return [];
    const missing = ids.filter((id) => !this.#actions.has(id));
    const read = missing.length > 0 ? await this.#store.getActions(missing) : [];
    const byId = new Map(read.map((action) => [action.action_id, action]));
    return ids.flatMap((id) => this.#actions.get(id) ?? byId.get(id) ?? []);
  }
}
