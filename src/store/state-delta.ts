import { isObject, type JsonObject, type JsonValue } from "../domain/json.ts";

/**
 * The difference between two JSON values, itself JSON:
 *   ["=", value]            replaced by value
 *   ["-"]                   the key is gone
 *   ["~", at, cut, put]     in a text or a list, `cut` elements at `at` make way for `put`
 *   ["#", {index: change}]  in a list, these elements changed
 *   {key: change}           in an object, these keys changed
 *
 * DELTA-1  `applyDelta(before, diff(before, after).delta)` equals `after` to the letter: JSON text with the same order of keys.
 * DELTA-2  Nothing of `before` or `after` is mutated; what did not change is shared.
 */
type Change = ["=", JsonValue] | ["-"] | ["~", number, number, string | JsonValue[]] | ["#", Changes] | Changes;
export type Changes = { [key: string]: Change };

/** Values nested deeper than this are replaced as a whole, so that no input can exhaust the stack. */
const DEPTH = 200;

export type Diff = { delta: Changes /** How many characters of JSON text the value gained. */; growth: number };

/** Null if there is no usable difference; the state is then stored whole. */
export function diff(before: JsonObject, after: JsonObject): Diff | null {
  const growth = { total: 0 };
  const delta = objectChanges(before, after, growth, 0);
  return delta && { delta, growth: growth.total };
}

export function applyDelta(before: JsonObject, delta: Changes): JsonObject {
  return applyChange(before, delta) as JsonObject;
}

type Growth = { total: number };
const size = (value: JsonValue): number => JSON.stringify(value).length;

function change(before: JsonValue, after: JsonValue, growth: Growth, depth: number): Change | undefined {
  if (before === after) return undefined;
  if (typeof before === "string" && typeof after === "string") return splice(before, after, growth);
  if (depth < DEPTH) {
    if (Array.isArray(before) && Array.isArray(after)) return listChange(before, after, growth, depth);
    if (isObject(before) && isObject(after)) {
      const changes = objectChanges(before, after, growth, depth);
      if (changes) return isEmpty(changes) ? undefined : changes;
    }
  }
  return replaced(before, after, growth);
}

function replaced(before: JsonValue, after: JsonValue, growth: Growth): Change {
  growth.total += size(after) - size(before);
  return ["=", after];
}

function objectChanges(before: JsonObject, after: JsonObject, growth: Growth, depth: number): Changes | null {
  const names = Object.keys(after);
  const kept = Object.keys(before).filter((key) => Object.hasOwn(after, key));
  // DELTA-1: applying keeps the old order and appends new keys; an object with any other order is replaced.
  if (kept.some((key, index) => names[index] !== key)) return null;
  const entries: [string, Change][] = [];
  for (const [key, value] of Object.entries(before)) {
    if (Object.hasOwn(after, key)) continue;
    growth.total -= size(key) + size(value) + 2;
    entries.push([key, ["-"]]);
  }
  for (const [index, key] of names.entries()) {
    const value = after[key] as JsonValue;
    if (index >= kept.length) {
      growth.total += size(key) + size(value) + 2;
      entries.push([key, ["=", value]]);
      continue;
    }
    const changed = change(before[key] as JsonValue, value, growth, depth + 1);
    if (changed) entries.push([key, changed]);
  }
  return Object.fromEntries(entries);
}

function listChange(before: JsonValue[], after: JsonValue[], growth: Growth, depth: number): Change | undefined {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && equal(before[head] as JsonValue, after[head] as JsonValue, depth + 1)) head++;
  if (head === before.length && head === after.length) return undefined;
  let tail = 0;
  while (tail < shorter - head && equal(before.at(-1 - tail) as JsonValue, after.at(-1 - tail) as JsonValue, depth + 1))
    tail++;
  const cut = before.slice(head, before.length - tail);
  const put = after.slice(head, after.length - tail);
  if (cut.length !== put.length) {
    growth.total += size(put) - size(cut);
    return ["~", head, cut.length, put];
  }
  const entries: [string, Change][] = [];
  for (const [index, value] of put.entries()) {
    const changed = change(cut[index] as JsonValue, value, growth, depth + 1);
    if (changed) entries.push([String(head + index), changed]);
  }
  return ["#", Object.fromEntries(entries)];
}

function splice(before: string, after: string, growth: Growth): Change {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  if (after.startsWith(before)) head = before.length;
  else while (head < shorter && before.charCodeAt(head) === after.charCodeAt(head)) head++;
  let tail = 0;
  while (
    tail < shorter - head &&
    before.charCodeAt(before.length - 1 - tail) === after.charCodeAt(after.length - 1 - tail)
  )
    tail++;
  const cut = before.slice(head, before.length - tail);
  const put = after.slice(head, after.length - tail);
  growth.total += size(put) - size(cut);
  return ["~", head, cut.length, put];
}

function equal(a: JsonValue, b: JsonValue, depth: number): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  // Values nested this deep count as different, which makes the difference larger but never wrong.
  if (depth > DEPTH) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((value, index) => equal(value, b[index] as JsonValue, depth + 1));
  }
  const names = Object.keys(a);
  const others = Object.keys(b);
  return (
    names.length === others.length &&
    names.every((key, index) => key === others[index] && equal(a[key] as JsonValue, b[key] as JsonValue, depth + 1))
  );
}

function applyChange(before: JsonValue | undefined, delta: Change): JsonValue {
  if (!Array.isArray(delta)) return applyToObject(before as JsonObject, delta);
  switch (delta[0]) {
    case "=":
      return delta[1];
    case "~": {
      const [, at, cut, put] = delta;
      if (typeof before === "string") return before.slice(0, at) + (put as string) + before.slice(at + cut);
      const list = before as JsonValue[];
      return [...list.slice(0, at), ...(put as JsonValue[]), ...list.slice(at + cut)];
    }
    case "#": {
      const list = [...(before as JsonValue[])];
      for (const [index, changed] of Object.entries(delta[1]))
        list[Number(index)] = applyChange(list[Number(index)], changed);
      return list;
    }
    case "-":
      throw new TypeError("only a key of an object can be gone");
  }
  return delta satisfies never;
}

// Entries, not assignment: a key named "__proto__" is data like any other.
function applyToObject(before: JsonObject, delta: Changes): JsonObject {
  const entries: [string, JsonValue][] = [];
  for (const [key, value] of Object.entries(before)) {
    const changed = Object.hasOwn(delta, key) ? delta[key] : undefined;
    if (changed === undefined) entries.push([key, value]);
    else if (!isRemoval(changed)) entries.push([key, applyChange(value, changed)]);
  }
  for (const [key, changed] of Object.entries(delta)) {
    if (!Object.hasOwn(before, key)) entries.push([key, applyChange(undefined, changed)]);
  }
  return Object.fromEntries(entries);
}

const isRemoval = (changed: Change): boolean => Array.isArray(changed) && changed[0] === "-";
const isEmpty = (changes: Changes): boolean => Object.keys(changes).length === 0;

/**
 * How the states of a session's steps are stored: a whole one, then differences, each from the step before.
 *
 * CHAIN-1  A state is stored whole again once the differences since the last whole one add up to its size. So storage stays within a
 *     few times the size of the changes, and rebuilding a state reads at most about twice its size.
 * CHAIN-2  A step whose predecessor is not in memory is stored whole. Nothing else depends on having it in memory.
 * CHAIN-3  A chain's state is parsed from the stored text, so nobody else holds a reference to what the next difference is based on.
 */
export type StoredState = {
  state_kind: "whole" | "delta";
  /** The iteration of the whole state that this one is rebuilt from; its own for a whole one. */
  base_iteration: number;
  /** JSON text of the state or of the difference. */
  state: string;
};

/**
 * Where a chain stands: what the next difference is taken from. Sizes are characters of JSON text. A reader does not
 * follow how the state grows, so `size` is that of the whole state until the chain is measured to be written on.
 */
export type Chain = { state: JsonObject; base_iteration: number; size: number; spent: number; measured: boolean };

/** What a row costs besides its text. It keeps chains of tiny differences short. */
const ROW_OVERHEAD = 64;

export function storeState(
  last: Chain | null,
  state: JsonObject,
  iteration: number,
): { stored: StoredState; chain: Chain } {
  const chain = last && measure(last);
  // A state this small is cheaper to write than to compare.
  const delta = chain && chain.size > ROW_OVERHEAD ? difference(chain.state, state) : null;
  if (!chain || !delta) return storeWhole(state, iteration);
  const { text, growth } = delta;
  const { base_iteration } = chain;
  const new_size = Math.max(2, chain.size + growth);
  // CHAIN-1: what was removed counts too, because a reader still reads it in the whole state.
  const spent = chain.spent + text.length + ROW_OVERHEAD + Math.max(0, -growth);
  if (spent >= new_size) return storeWhole(state, iteration);
  return {
    stored: { state_kind: "delta", base_iteration, state: text },
    chain: {
      state: applyDelta(chain.state, JSON.parse(text) as Changes),
      base_iteration,
      size: new_size,
      spent,
      measured: true,
    },
  };
}

function measure(chain: Chain): Chain {
  if (chain.measured) return chain;
  const true_size = JSON.stringify(chain.state).length;
  return { ...chain, size: true_size, spent: chain.spent + Math.max(0, chain.size - true_size), measured: true };
}

function difference(before: JsonObject, after: JsonObject): { text: string; growth: number } | null {
  try {
    const changes = diff(before, after);
    return changes && { text: JSON.stringify(changes.delta), growth: changes.growth };
  } catch (error) {
    // A difference is nested deeper than its state, so it may exhaust the stack where the state does not.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

export function storeWhole(state: JsonObject, iteration: number): { stored: StoredState; chain: Chain } {
  const text = JSON.stringify(state);
  return {
    stored: { state_kind: "whole", base_iteration: iteration, state: text },
    chain: {
      state: JSON.parse(text) as JsonObject,
      base_iteration: iteration,
      size: text.length,
      spent: 0,
      measured: true,
    },
  };
}

/** Advances a chain that is read in the order of iterations by one stored state. */
export function readState(chain: Chain | null, stored: StoredState): Chain {
  if (stored.state_kind === "whole") {
    const state = JSON.parse(stored.state) as JsonObject;
    return { state, base_iteration: stored.base_iteration, size: stored.state.length, spent: 0, measured: true };
  }
  if (!chain) throw new Error(`a difference from iteration ${stored.base_iteration} was read without its base`);
  const state = applyDelta(chain.state, JSON.parse(stored.state) as Changes);
  const spent = chain.spent + stored.state.length + ROW_OVERHEAD;
  return { ...chain, state, spent, measured: false };
}
