import { isObject, type JsonObject, type JsonValue } from "../../src/domain/json.ts";
import type { Random } from "./random.ts";

/**
 * Keys that break a careless merge of objects: prototypes, the empty key, keys that JavaScript reorders, halves of a surrogate
 * pair.
 */
const KEYS = [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "length",
  "",
  "0",
  "1",
  "7",
  "10",
  "4294967294",
  "4294967295",
  "-1",
  "01",
  "a",
  "b",
  "c",
  "messages",
  "ключ",
  "é",
  "e\u0301",
  "=",
  "-",
  "~",
  "#",
  "😀",
  "\ud83d",
  "\ude00",
  "\u0000",
  "\u2028",
];
const TEXTS = [
  "",
  "a",
  "ab",
  "😀",
  "😁",
  "\ud83d",
  "\ude00",
  "👩‍👩‍👧",
  "Ёлка",
  '"',
  "\\",
  "\n\t\u0000",
  "\u2028",
  "lorem ipsum dolor",
];
const SCALARS: JsonValue[] = [null, true, false, 0, 1, -1, 0.1, 1e300, 5e-324, 2 ** 53, ""];

export function randomValue(random: Random, depth = 0): JsonValue {
  const kind = random.below(depth > 3 ? 2 : 4);
  if (kind === 0) return random.pick(SCALARS);
  if (kind === 1) return randomText(random);
  if (kind === 2) return Array.from({ length: random.below(5) }, () => randomValue(random, depth + 1));
  return randomObject(random, depth);
}

export function randomObject(random: Random, depth = 0): JsonObject {
  const keys = random.shuffled(KEYS).slice(0, random.below(6));
  return Object.fromEntries(keys.map((key) => [key, randomValue(random, depth + 1)]));
}

/** The state after one more step: a few parts grew, shrank, moved or were replaced, most stayed. Does not change its argument. */
export function nextState(random: Random, state: JsonObject): JsonObject {
  let next = state;
  for (let edits = 1 + random.below(3); edits > 0; edits--) next = editObject(random, next);
  return next;
}

function edit(random: Random, value: JsonValue): JsonValue {
  if (random.chance(0.1)) return randomValue(random, 2);
  if (typeof value === "string") return editText(random, value);
  if (Array.isArray(value)) return editList(random, value);
  if (isObject(value)) return editObject(random, value);
  return random.pick(SCALARS);
}

function editObject(random: Random, value: JsonObject): JsonObject {
  const entries = Object.entries(value);
  const at = random.below(entries.length);
  const choice = random.below(10);
  if (choice < 3 || entries.length === 0) entries.push([random.pick(KEYS), randomValue(random, 2)]);
  else if (choice === 3) entries.splice(at, 1);
  else if (choice === 4) return Object.fromEntries(random.shuffled(entries));
  else entries[at] = [entries[at]?.[0] ?? "", edit(random, entries[at]?.[1] ?? null)];
  return Object.fromEntries(entries);
}

function editList(random: Random, value: JsonValue[]): JsonValue[] {
  const list = [...value];
  const at = random.below(list.length);
  switch (random.below(7)) {
    case 0:
      list.splice(at, 0, randomValue(random, 2));
      break;
    case 1:
      list.splice(at, 1 + random.below(3));
      break;
    case 2:
      return random.shuffled(list);
    case 3:
      if (list.length > 0) list[at] = edit(random, list[at] as JsonValue);
      break;
    default:
      list.push(randomValue(random, 2));
  }
  return list;
}

// Positions count code units, so that a surrogate pair is sometimes cut in two.
function editText(random: Random, value: string): string {
  const at = random.below(value.length + 1);
  switch (random.below(4)) {
    case 0:
      return value.slice(0, at) + randomText(random) + value.slice(at);
    case 1:
      return value.slice(0, at) + value.slice(at + 1 + random.below(4));
    default:
      return value + randomText(random);
  }
}

function randomText(random: Random): string {
  return Array.from({ length: random.below(4) }, () => random.pick(TEXTS)).join("");
}
