import { isObject, type JsonObject, type JsonValue } from "../../src/domain/json.ts";
import type { Random } from "../store/random.ts";

const TEXTS = [
  "",
  " ",
  "x",
  "null",
  "true",
  "0",
  "-1",
  "next",
  "now",
  "open",
  "archived",
  "echo",
  "agent_pause",
  "agent_fork",
  "'; DROP TABLE queue; --",
  "%",
  "%00",
  "../..",
  "__proto__",
  "\u0000",
  "\n",
  "\u001b[31m",
  "\ud800",
  "\udfff x",
  "\ufeff",
  "\u2028",
  "😀",
  "ё",
  "e\u0301",
  "שלום\u202e",
  "x".repeat(200),
  "x".repeat(201),
  "й".repeat(5000),
  "2024-01-01T00:00:00.000Z",
  "${x}",
  "<b>",
];
const NUMBERS = [
  0,
  -0,
  1,
  -1,
  2,
  9,
  10,
  0.5,
  -1.5,
  1e-7,
  1e21,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  -(2 ** 53),
  2 ** 63,
  4_294_967_296_000,
];

/** Any JSON value, with a preference for those that break programs. */
export function randomJson(random: Random, names: readonly string[], depth = 4): JsonValue {
  const kind = random.below(depth > 0 ? 8 : 6);
  if (kind === 0) return null;
  if (kind === 1) return random.chance(0.5);
  if (kind === 2) return random.pick(NUMBERS);
  if (kind <= 4) return randomText(random);
  if (kind === 5) return random.chance(0.5) ? [] : {};
  const length = random.below(5);
  if (kind === 6) return Array.from({ length }, () => randomJson(random, names, depth - 1));
  const entries = Array.from({ length }, (): [string, JsonValue] => [
    random.chance(0.7) ? random.pick(names) : randomText(random),
    randomJson(random, names, depth - 1),
  ]);
  return Object.fromEntries(entries);
}

export const randomText = (random: Random): string =>
  random.chance(0.8)
    ? random.pick(TEXTS)
    : String.fromCharCode(
        ...Array.from({ length: random.below(20) }, () => random.below(random.chance(0.5) ? 128 : 65_536)),
      );

/** The value with one or a few of its parts replaced, removed, wrapped or added. */
export function mutated(random: Random, value: JsonValue, names: readonly string[]): JsonValue {
  let result = value;
  for (let times = 1 + random.below(3); times > 0; times -= 1) result = mutatedOnce(random, result, names);
  return result;
}

function mutatedOnce(random: Random, value: JsonValue, names: readonly string[]): JsonValue {
  if (Array.isArray(value) && value.length > 0 && random.chance(0.7)) {
    const at = random.below(value.length);
    return value.with(at, mutatedOnce(random, value[at] ?? null, names));
  }
  if (!isObject(value) || random.chance(0.05)) return random.chance(0.2) ? [value] : randomJson(random, names, 2);
  const keys = Object.keys(value);
  const key = random.pick(keys.length > 0 ? keys : names);
  const choice = random.below(4);
  if (choice === 0) return without(value, key);
  if (choice === 1) return { ...value, [random.pick(names)]: randomJson(random, names, 2) };
  if (choice === 2) return { ...value, [key]: randomJson(random, names, 3) };
  return { ...value, [key]: mutatedOnce(random, value[key] ?? null, names) };
}

function without(value: JsonObject, key: string): JsonObject {
  const { [key]: _, ...rest } = value;
  return rest;
}
