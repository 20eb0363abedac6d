import { isObject } from "../domain/json.ts";

/** JSON text in which the order of keys does not matter: engines may keep documents in an order of their own. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, given: unknown) =>
    isObject(given) ? Object.fromEntries(Object.entries(given).sort(([a], [b]) => (a < b ? -1 : 1))) : given,
  );
