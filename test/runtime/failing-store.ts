import type { EverstepError } from "../../src/domain/errors.ts";
import type { Batch, Store } from "../../src/store/store.ts";

/** The real store, except that some commits fail. */
export function failingStore(store: Store, failureOf: (batch: Batch) => EverstepError | null): Store {
  const commit: Store["commit"] = async (batch) => {
    const failure = failureOf(batch);
    if (failure) throw failure;
    return store.commit(batch);
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === "commit") return commit;
      const own: unknown = Reflect.get(target, name);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}
