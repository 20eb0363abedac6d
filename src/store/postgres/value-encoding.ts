import { isObject, type JsonValue } from "../../domain/json.ts";

/**
 * Values as PostgreSQL can hold them. Its texts cannot hold a zero character or half of a surrogate pair, nor can its
 * `jsonb`; such values are stored as JSON text within a text, behind a mark, and come back to the letter.
 */
const MARK = "\u0001";
const WRAPPED = "$json";
const ZERO_OR_HALF_PAIR = /\\u(?:0000|d[89a-f])/i;

export function toText(text: string): string {
  const isPlain = !text.startsWith(MARK) && !text.includes("\u0000") && text.isWellFormed();
  return isPlain ? text : MARK + JSON.stringify(text);
}

export function fromText(stored: string): string {
  return stored.startsWith(MARK) ? (JSON.parse(stored.slice(1)) as string) : stored;
}

/** JSON text for a `jsonb` column. */
export function toJson(value: JsonValue | object): string {
  if (Array.isArray(value) && value.length === 0) return "[]";
  const text = JSON.stringify(value);
  const mustWrap = ZERO_OR_HALF_PAIR.test(text) || isWrapped(value) || isDeep(text);
  return mustWrap ? JSON.stringify({ [WRAPPED]: text }) : text;
}

export function fromJson(stored: JsonValue): JsonValue {
  return isWrapped(stored) ? (JSON.parse(stored[WRAPPED]) as JsonValue) : stored;
}

const isWrapped = (value: unknown): value is { [WRAPPED]: string } =>
  isObject(value) && typeof value[WRAPPED] === "string" && Object.keys(value).length === 1;

/** The server's parser is recursive and has a stack of its own. */
const DEEPEST = 1000;
function isDeep(text: string): boolean {
  if (text.length <= DEEPEST * 2) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > DEEPEST) return true;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return false;
}

export type Scalar = string | number | boolean | null;

/** The text form of an array, for parameters that hold a column of many rows. Where it has nothing but nulls it is empty. */
export function arrayOf(values: readonly Scalar[]): string;
export function arrayOf<Row>(rows: readonly Row[], valueOf: (row: Row) => Scalar): string;
export function arrayOf<Row>(rows: readonly Row[], valueOf: (row: Row) => Scalar = (row) => row as Scalar): string {
  let text = "";
  let hasValue = false;
  for (const row of rows) {
    const value = valueOf(row);
    hasValue ||= value !== null;
    text += `,${element(value)}`;
  }
  return hasValue ? `{${text.slice(1)}}` : "{}";
}

const NEEDS_ESCAPES = /["\\]/;
const ESCAPED = /["\\]/g;

function element(value: Scalar): string {
  if (value === null) return "NULL";
  if (typeof value !== "string") return String(value);
  return NEEDS_ESCAPES.test(value) ? `"${value.replace(ESCAPED, "\\$&")}"` : `"${value}"`;
}
