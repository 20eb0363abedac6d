export type DiffLine = {
  kind: "same" | "removed" | "added";
  text: string;
  /** Line number in the old and in the new text; null where it is absent. */
  before: number | null;
  after: number | null;
};

/** The most pairs of lines that are compared; a larger change is shown as one removal and one addition. */
const MOST_PAIRS = 1_000_000;

/** A line diff, as `diff` prints it. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const lines: DiffLine[] = [];
  const same = (at: number, there: number) =>
    lines.push({ kind: "same", text: a[at] ?? "", before: at + 1, after: there + 1 });
  for (let at = 0; at < start; at++) same(at, at);
  for (const { kind, at, there } of middle(a.slice(start, a.length - end), b.slice(start, b.length - end))) {
    if (kind === "same") same(start + at, start + there);
    else if (kind === "removed") lines.push({ kind, text: a[start + at] ?? "", before: start + at + 1, after: null });
    else lines.push({ kind, text: b[start + there] ?? "", before: null, after: start + there + 1 });
  }
  for (let left = end; left > 0; left--) same(a.length - left, b.length - left);
  return lines;
}

/** A final line break does not start an empty line. */
const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/));

type Move = { kind: DiffLine["kind"]; at: number; there: number };

function middle(a: string[], b: string[]): Move[] {
  const isComparable = a.length * b.length <= MOST_PAIRS;
  const lengths = isComparable ? commonLengths(a, b) : null;
  const width = b.length + 1;
  const moves: Move[] = [];
  for (let at = 0, there = 0; at < a.length || there < b.length; ) {
    const isSame = isComparable && at < a.length && there < b.length && a[at] === b[there];
    const below = lengths?.[(at + 1) * width + there] ?? 0;
    const beside = lengths?.[at * width + there + 1] ?? 0;
    const kind = isSame ? "same" : at < a.length && (there >= b.length || below >= beside) ? "removed" : "added";
    moves.push({ kind, at, there });
    if (kind !== "added") at++;
    if (kind !== "removed") there++;
  }
  return moves;
}

/** Lengths of the longest common subsequences of all pairs of suffixes. */
function commonLengths(a: string[], b: string[]): Uint32Array {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const lengthAt = (at: number, there: number): number => lengths[at * width + there] ?? 0;
  for (let at = a.length - 1; at >= 0; at--)
    for (let there = b.length - 1; there >= 0; there--)
      lengths[at * width + there] =
        a[at] === b[there]
          ? lengthAt(at + 1, there + 1) + 1
          : Math.max(lengthAt(at + 1, there), lengthAt(at, there + 1));
  return lengths;
}

/** Folds unchanged lines except those around a change. */
export type DiffPart = { kind: "lines"; lines: DiffLine[] } | { kind: "folded"; lines: DiffLine[] };

export function foldSame(lines: DiffLine[], around = 3): DiffPart[] {
  const isNear = lines.map(() => false);
  for (const [index, { kind }] of lines.entries())
    if (kind !== "same") isNear.fill(true, Math.max(0, index - around), index + around + 1);
  const parts: DiffPart[] = [];
  for (const [index, line] of lines.entries()) {
    const kind = isNear[index] ? "lines" : "folded";
    const last = parts.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else parts.push({ kind, lines: [line] });
  }
  return parts;
}
