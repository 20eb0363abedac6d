/** Bytes of Markdown in one message: with its HTML, and as an edit, which contains everything twice, it stays within the limit. */
export const LARGEST_PART = 9_000;

type Block = { text: string; fence: string | null };

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const bytes = (text: string): number => (text.length <= SHORT ? sizeOfShort(text) : Buffer.byteLength(text));
/** Up to this length, counting here is faster than a native call. */
const SHORT = 32;

function sizeOfShort(text: string): number {
  let size = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) as number;
    size += sizeOf(code);
    at += code < 0x10000 ? 1 : 2;
  }
  return size;
}

const sizeOf = (code: number): number => (code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);

/**
 * Splits a long text into parts of at most `most` bytes: between paragraphs, or else between lines, then words.
 * A code block that is cut is closed and opened again, so that each part renders correctly.
 */
export function split(text: string, most = LARGEST_PART): string[] {
  if (bytes(text) <= most) return [text];
  return pack(
    blocks(text).flatMap((whole) => smaller(whole, most)),
    "\n\n",
    most,
  );
}

/** Packs as many pieces into each part as fit. Each piece is measured once. */
function pack(pieces: string[], separator: string, most: number): string[] {
  const parts: string[][] = [];
  let room = 0;
  for (const piece of pieces) {
    const size = bytes(piece);
    const last = parts.at(-1);
    if (last && separator.length + size <= room) {
      last.push(piece);
      room -= separator.length + size;
    } else {
      parts.push([piece]);
      room = most - size;
    }
  }
  return parts.map((part) => part.join(separator));
}

/** Splits a text into paragraphs and whole code blocks. */
function blocks(text: string): Block[] {
  const pieces: Block[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  const end = (ofFence: string | null): void => {
    if (lines.length > 0) pieces.push({ text: lines.join("\n"), fence: ofFence });
    lines = [];
  };
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (fence !== null) {
      lines.push(line);
      if (mark && mark[0] === fence.trimStart()[0] && mark.length >= markOf(fence).length && line.trim() === mark) {
        end(fence);
        fence = null;
      }
    } else if (mark) {
      end(null);
      fence = line;
      lines.push(line);
    } else if (line.trim() === "") end(null);
    else lines.push(line);
  }
  end(fence);
  return pieces;
}

const markOf = (fence: string): string => FENCE.exec(fence)?.[1] ?? "```";

function smaller({ text, fence }: Block, most: number): string[] {
  if (bytes(text) <= most) return [text];
  if (fence === null) return packLines(text.split("\n"), most);
  const close = markOf(fence);
  const lines = text.split("\n").slice(1);
  if (lines.at(-1)?.trim() === close) lines.pop();
  const room = most - bytes(fence) - bytes(close) - 2;
  return packLines(lines, room).map((part) => `${fence}\n${part}\n${close}`);
}

const packLines = (lines: string[], most: number): string[] =>
  pack(
    lines.flatMap((line) => shortLines(line, most)),
    "\n",
    most,
  );

/** Cuts a line that is too long, after a space if there is one, and never inside a character. */
function shortLines(line: string, most: number): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let end = endOfFit(line, start, most); end < line.length; end = endOfFit(line, start, most)) {
    const space = line.lastIndexOf(" ", end - 1);
    const cut = space - start > (end - start) / 2 ? space + 1 : end;
    parts.push(line.slice(start, cut));
    start = cut;
  }
  return [...parts, line.slice(start)];
}

/** The end of the longest piece of whole characters with at most this many bytes; at least one character. */
function endOfFit(line: string, start: number, most: number): number {
  let end = start;
  for (let size = 0; end < line.length; ) {
    const code = line.codePointAt(end) as number;
    size += sizeOf(code);
    if (size > most && end > start) return end;
    end += code < 0x10000 ? 1 : 2;
  }
  return end;
}
