import { type Action, isFinal } from "../domain/action.ts";
import type { Store } from "../store/store.ts";

/** The actions whose guidance a session has and no step used yet: their receipts change with the step that does. */
export class DeliveredGuidance {
  readonly #store: Store;
  readonly #actions = new Map<string, Action>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Takes in actions as they were just committed. */
  update(actions: Action[]): void {
    for (const action of actions) {
      if (action.processed && !isFinal(action)) this.#actions.set(action.action_id, action);
      else this.#actions.delete(action.action_id);
    }
  }

  async get(ids: string[]): Promise<Action[]> {
    const found = await Promise.all(ids.map(async (id) => this.#actions.get(id) ?? this.#store.getAction(id)));
    return found.filter((action) => action !== null);
  }
}
