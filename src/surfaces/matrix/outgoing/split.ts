/** Bytes of Markdown in one message: with its HTML and as an edit, which says everything twice, it stays within the limit. */
export const LARGEST_PART = 9_000;

type Block = { text: string; fence: string | null };

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const bytes = (text: string): number => (text.length <= SHORT ? sizeOfShort(text) : Buffer.byteLength(text));
/** Up to this length counting here is faster than a call. */
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
 * The parts of a long text, none of more than `most` bytes. It is cut between paragraphs; where one is too long, between
 * lines, then words. A block of code that is cut is closed and opened again, so that each part shows as it should.
 */
export function split(text: string, most = LARGEST_PART): string[] {
  if (bytes(text) <= most) return [text];
  return pack(
    blocks(text).flatMap((whole) => smaller(whole, most)),
    "\n\n",
    most,
  );
}

/** As many of the pieces in one part as fit. Each piece is measured once. */
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

/** Paragraphs, and blocks of code with all that is in them. */
function blocks(text: string): Block[] {
  const found: Block[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  const end = (ofFence: string | null): void => {
    if (lines.length > 0) found.push({ text: lines.join("\n"), fence: ofFence });
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
  return found;
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

/** A line that is too long is cut after a space where there is one, and never inside a character. */
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

/** The place up to which the line has at most so many bytes, in whole characters; at least one of them. */
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
