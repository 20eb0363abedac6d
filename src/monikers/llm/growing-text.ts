type FieldText = { isKey: boolean; value: string; told: number };

/**
 * Picks a text field out of a JSON object while the object is still being written, reading each character once.
 * Only fields of the outermost object count; a key of the same name further in does not.
 */
export class GrowingFields {
  readonly #onText: (key: string, piece: string) => void;
  #depth = 0;
  #key: string | null = null;
  #expectKey = false;
  #string: FieldText | null = null;
  #escape = "";
  #read = 0;

  constructor(onText: (key: string, piece: string) => void) {
    this.#onText = onText;
  }

  /** The whole reply so far. */
  update(reply: string): void {
    for (; this.#read < reply.length; this.#read++) this.#take(reply[this.#read] as string);
    this.#tell();
  }

  #take(char: string): void {
    if (this.#string) return this.#inString(char);
    if (char === '"') {
      this.#string = { isKey: this.#depth === 1 && this.#expectKey, value: "", told: 0 };
      return;
    }
    if (char === "{" || char === "[") {
      this.#depth += 1;
      if (this.#depth === 1) this.#expectKey = char === "{";
    } else if (char === "}" || char === "]") this.#depth -= 1;
    else if (this.#depth === 1 && char === ",") this.#expectKey = true;
    else if (this.#depth === 1 && char === ":") this.#expectKey = false;
  }

  #inString(char: string): void {
    const string = this.#string as FieldText;
    // Before the object begins there may be prose with quotes in it.
    if (this.#depth === 0) {
      if (char === '"' || char === "\n") this.#string = null;
      return;
    }
    if (this.#escape !== "") {
      this.#escape += char;
      const isWhole = this.#escape[1] === "u" ? this.#escape.length === 6 : true;
      if (!isWhole) return;
      string.value += unescape(this.#escape);
      this.#escape = "";
    } else if (char === "\\") this.#escape = char;
    else if (char === '"') {
      if (string.isKey) this.#key = string.value;
      else this.#tell();
      this.#string = null;
    } else string.value += char;
  }

  #tell(): void {
    const string = this.#string;
    if (!string || string.isKey || this.#depth !== 1 || this.#key === null) return;
    // Half of a surrogate pair waits for the other half.
    const last = string.value.charCodeAt(string.value.length - 1);
    const end = last >= 0xd800 && last <= 0xdbff ? string.value.length - 1 : string.value.length;
    if (end > string.told) this.#onText(this.#key, string.value.slice(string.told, end));
    string.told = Math.max(string.told, end);
  }
}

function unescape(escape: string): string {
  try {
    return JSON.parse(`"${escape}"`) as string;
  } catch {
    return escape.slice(1);
  }
}
