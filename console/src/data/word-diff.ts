export type Piece = { text: string; isOwn: boolean };

/** Longer texts are not compared: that would block the page. */
const MOST_WORDS = 600;

/** The words of one text, with those marked that the other text lacks (longest common subsequence). */
export function markOwnWords(own: string, other: string): Piece[] {
  const a = wordsOf(own);
  const b = wordsOf(other);
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return [{ text: own, isOwn: false }];
  const lengths = commonLengths(a, b);
  const pieces: Piece[] = [];
  for (let at = 0, there = 0; at < a.length; ) {
    const word = a[at] ?? "";
    const isShared = there < b.length && word === b[there];
    const skipsOther =
      there < b.length && !isShared && lengthAt(lengths, at, there + 1) > lengthAt(lengths, at + 1, there);
    if (skipsOther) {
      there += 1;
      continue;
    }
    append(pieces, word, !isShared && word.trim() !== "");
    at += 1;
    if (isShared) there += 1;
  }
  return pieces;
}

const wordsOf = (text: string): string[] => text.match(/\s+|\S+/g) ?? [];

const lengthAt = (lengths: number[][], at: number, there: number): number => lengths[at]?.[there] ?? 0;

/** Lengths of the longest common subsequences of all pairs of suffixes. */
function commonLengths(a: string[], b: string[]): number[][] {
  const lengths = Array.from({ length: a.length + 1 }, () => Array.from({ length: b.length + 1 }, () => 0));
  for (let at = a.length - 1; at >= 0; at--)
    for (let there = b.length - 1; there >= 0; there--)
      (lengths[at] as number[])[there] =
        a[at] === b[there]
          ? lengthAt(lengths, at + 1, there + 1) + 1
          : Math.max(lengthAt(lengths, at + 1, there), lengthAt(lengths, at, there + 1));
  return lengths;
}

function append(pieces: Piece[], text: string, isOwn: boolean): void {
  const last = pieces.at(-1);
  if (last?.isOwn === isOwn) last.text += text;
  else pieces.push({ text, isOwn });
}
