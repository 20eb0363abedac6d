import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { Random } from "../store/random.ts";

/** A part of a string as written, and the value known once that part has arrived. */
type Part = { end: number; value: string };
export type WrittenField = { key: string; value: string; parts: Part[] };
export type WrittenObject = { text: string; fields: WrittenField[] };

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** JSON as any writer may format it: with whitespace anywhere and any character escaped. Returns where its own strings are. */
export function writeObject(object: JsonObject, random: Random, start = 0): WrittenObject {
  const writer = new Writer(random, start);
  writer.object(object, 0);
  return { text: writer.text, fields: writer.fields };
}

/** The part of a field's value that the first `length` characters determine. */
export function valueWithin({ parts }: WrittenField, length: number): string {
  const said = parts.findLast(({ end }) => end <= length)?.value ?? "";
  // Half of a surrogate pair determines nothing yet, unless the string ends with it.
  const isWhole = (parts.at(-1)?.end ?? 0) <= length;
  return !isWhole && /[\ud800-\udbff]$/.test(said) ? said.slice(0, -1) : said;
}

class Writer {
  text = "";
  readonly fields: WrittenField[] = [];
  readonly #random: Random;
  readonly #start: number;

  constructor(random: Random, start: number) {
    this.#random = random;
    this.#start = start;
  }

  object(object: JsonObject, depth: number): void {
    this.#token("{");
    for (const [index, [key, value]] of Object.entries(object).entries()) {
      if (index > 0) this.#token(",");
      this.#string(key);
      this.#token(":");
      if (typeof value === "string" && depth === 0) this.fields.push({ key, value, parts: this.#string(value) });
      else this.#value(value, depth);
    }
    this.#token("}");
  }

  #value(value: JsonValue, depth: number): void {
    if (typeof value === "string") this.#string(value);
    else if (Array.isArray(value)) this.#array(value, depth);
    else if (typeof value === "object" && value !== null) this.object(value, depth + 1);
    else this.#token(JSON.stringify(value));
  }

  #array(values: JsonValue[], depth: number): void {
    this.#token("[");
    for (const [index, value] of values.entries()) {
      if (index > 0) this.#token(",");
      this.#value(value, depth + 1);
    }
    this.#token("]");
  }

  #token(token: string): void {
    this.#space();
    this.text += token;
    this.#space();
  }

  #space(): void {
    if (this.#random.chance(0.2)) this.text += this.#random.pick([" ", "\n", "\t", "  \r\n"]);
  }

  #string(value: string): Part[] {
    this.#space();
    this.text += '"';
    const parts = [...Array(value.length).keys()].map((index) => {
      this.text += this.#written(value[index] as string, value.codePointAt(index) ?? 0);
      return { end: this.#start + this.text.length, value: value.slice(0, index + 1) };
    });
    this.text += '"';
    parts.push({ end: this.#start + this.text.length, value });
    this.#space();
    return parts;
  }

  #written(char: string, point: number): string {
    const code = char.charCodeAt(0);
    const isLone = code >= 0xd800 && code <= 0xdfff && point < 0x10000;
    const short = SHORT[char];
    if (short && (char === '"' || char === "\\" || this.#random.chance(0.5))) return short;
    if (code < 0x20 || isLone || this.#random.chance(0.1)) return `\\u${code.toString(16).padStart(4, "0")}`;
    return char === "/" && this.#random.chance(0.3) ? "\\/" : char;
  }
}
