/** A block of a stream of server-sent events; one without data still moves the cursor. */
export type SseBlock = { event: string; data: string | null; id: string | null };

/** Parses text in arbitrary pieces into events, as the HTML standard defines. Comments are ignored. */
export class SseParser {
  /** Pieces of the unfinished line. */
  #rest: string[] = [];
  #endedWithReturn = false;
  #event = "";
  #data: string[] = [];
  #id: string | null = null;

  push(text: string): SseBlock[] {
    // A line may end with "\r\n" whose second half comes with the next piece.
    const piece = this.#endedWithReturn && text.startsWith("\n") ? text.slice(1) : text;
    if (text !== "") this.#endedWithReturn = text.endsWith("\r");
    const [first = "", ...others] = piece.split(/\r\n|\n|\r/);
    this.#rest.push(first);
    if (others.length === 0) return [];
    const lines = [this.#rest.join(""), ...others.slice(0, -1)];
    this.#rest = [others.at(-1) ?? ""];
    return lines.flatMap((line) => this.#line(line) ?? []);
  }

  #line(line: string): SseBlock | null {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  #end(): SseBlock | null {
    const data = this.#data.length > 0 ? this.#data.join("\n") : null;
    const block = { event: this.#event || "message", data, id: this.#id };
    [this.#event, this.#data, this.#id] = ["", [], null];
    return block.data === null && block.id === null ? null : block;
  }
}
