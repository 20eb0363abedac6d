import { AnswerStart } from "./json-reply.ts";

/** A string being read, and the part of it not emitted yet. */
type GrowingString = { isKey: boolean; pending: string };

/**
 * Extracts the text fields of a JSON object while the object is still being written, reading each character once. Only fields
 * of the outermost object count; nested keys of the same name do not, nor does anything after it.
 */
export class GrowingFields {
  readonly #onText: (key: string, piece: string) => void;
  #depth = 0;
  #isObject = false;
  #isOver = false;
  #key: string | null = null;
  #expectKey = false;
  #string: GrowingString | null = null;
  #escape = "";
  #read = 0;
  #hasBegun = false;
  readonly #start = new AnswerStart();

  constructor(onText: (key: string, piece: string) => void) {
    this.#onText = onText;
  }

  /** The whole reply so far. */
  update(reply: string): void {
    if (!this.#hasBegun && !this.#begin(reply)) return;
    for (; this.#read < reply.length && !this.#isOver; this.#read++) this.#take(reply[this.#read] as string);
    this.#flush(false);
  }

  /** Each character of a reply that still thinks is read only once as well. */
  #begin(reply: string): boolean {
    const start = this.#start.update(reply);
    if (start === null) return false;
    this.#hasBegun = true;
    this.#read = start;
    return true;
  }

  #take(char: string): void {
    if (this.#string) return this.#inString(char);
    if (char === '"') {
      this.#string = { isKey: this.#depth === 1 && this.#expectKey, pending: "" };
      return;
    }
    if (char === "{" || char === "[") this.#enter(char);
    else if (char === "}" || char === "]") this.#leave();
    else if (this.#depth === 1 && char === ",") this.#expectKey = this.#isObject;
    else if (this.#depth === 1 && char === ":") this.#expectKey = false;
  }

  #enter(char: string): void {
    this.#depth += 1;
    if (this.#depth > 1) return;
    this.#isObject = char === "{";
    this.#expectKey = this.#isObject;
  }

  /** Prose before the object may contain a closing bracket without an opening one. */
  #leave(): void {
    this.#depth = Math.max(0, this.#depth - 1);
    this.#isOver = this.#depth === 0 && this.#isObject;
  }

  #inString(char: string): void {
    const string = this.#string as GrowingString;
    // Prose with quotes may precede the object.
    if (this.#depth === 0) {
      if (char === '"' || char === "\n") this.#string = null;
      return;
    }
    if (this.#escape !== "") {
      this.#escape += char;
      const isWhole = this.#escape[1] === "u" ? this.#escape.length === 6 : true;
      if (!isWhole) return;
      string.pending += unescape(this.#escape);
      this.#escape = "";
    } else if (char === "\\") this.#escape = char;
    else if (char === '"') {
      if (string.isKey) this.#key = string.pending;
      else this.#flush(true);
      this.#string = null;
    } else string.pending += char;
  }

  #flush(isWhole: boolean): void {
    const string = this.#string;
    if (!string || string.isKey || !this.#isObject || this.#depth !== 1 || this.#key === null) return;
    // Half of a surrogate pair waits for the other half.
    const last = string.pending.charCodeAt(string.pending.length - 1);
    const end = !isWhole && last >= 0xd800 && last <= 0xdbff ? -1 : string.pending.length;
    const piece = string.pending.slice(0, end);
    if (piece === "") return;
    string.pending = string.pending.slice(piece.length);
    this.#onText(this.#key, piece);
  }
}

const ESCAPE = /^\\(?:["\\/bfnrt]|u[0-9a-f]{4})$/i;

const unescape = (escape: string): string =>
  ESCAPE.test(escape) ? (JSON.parse(`"${escape}"`) as string) : escape.slice(1);
