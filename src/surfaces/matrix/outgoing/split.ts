/** Bytes of Markdown in one message: with its HTML and as an edit, which says everything twice, it stays within the limit. */
export const LARGEST_PART = 12_000;

type Block = { text: string; fence: string | null };

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const bytes = (text: string): number => Buffer.byteLength(text);

/**
 * The parts of a long text, none of more than `most` bytes. It is cut between paragraphs; where one is too long, between
 * lines, then words. A block of code that is cut is closed and opened again, so that each part shows as it should.
 */
export function split(text: string, most = LARGEST_PART): string[] {
  if (bytes(text) <= most) return [text];
  const parts: string[] = [];
  let part = "";
  for (const block of blocks(text).flatMap((whole) => smaller(whole, most))) {
    const joined = part === "" ? block : `${part}\n\n${block}`;
    if (bytes(joined) <= most) part = joined;
    else {
      if (part !== "") parts.push(part);
      part = block;
    }
  }
  return part === "" ? parts : [...parts, part];
}

/** Paragraphs, and blocks of code with all that is in them. */
function blocks(text: string): Block[] {
  const found: Block[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  const end = (ofFence: string | null): void => {
    if (lines.some((line) => line.trim() !== "")) found.push({ text: lines.join("\n"), fence: ofFence });
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

function packLines(lines: string[], most: number): string[] {
  const parts: string[] = [];
  let part: string | null = null;
  for (const line of lines.flatMap((whole) => shortLines(whole, most))) {
    const joined: string = part === null ? line : `${part}\n${line}`;
    if (bytes(joined) <= most) part = joined;
    else {
      if (part !== null) parts.push(part);
      part = line;
    }
  }
  return part === null ? parts : [...parts, part];
}

/** A line that is too long is cut after a space where there is one, and never inside a character. */
function shortLines(line: string, most: number): string[] {
  const parts: string[] = [];
  let rest = line;
  while (bytes(rest) > most) {
    let cut = 0;
    let size = 0;
    for (const character of rest) {
      size += bytes(character);
      if (size > most) break;
      cut += character.length;
    }
    const space = rest.lastIndexOf(" ", cut - 1);
    const at = space > cut / 2 ? space + 1 : cut;
    parts.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...parts, rest];
}
