import type { Batch, Store } from "../../src/store/store.ts";

/** Returns the store's own promises, so that listening delays no result and changes no order. */
export function hear<Heard extends Store>(store: Heard, onCommitted: (batch: Batch) => void): Heard {
  const commit: Store["commit"] = (batch) => {
    const answer = store.commit(batch);
    answer.then(({ kind }) => kind === "committed" && onCommitted(batch)).catch(() => {});
    return answer;
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === "commit") return commit;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
