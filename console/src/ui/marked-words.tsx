import { markOwnWords } from "../data/word-diff.ts";

/** A text with the words marked that the other text lacks. */
export function MarkedWords({ own, other, look }: { own: string; other: string; look: string }) {
  let at = 0;
  return markOwnWords(own, other).map(({ text, isOwn }) => {
    const key = at;
    at += text.length;
    return isOwn ? (
      <mark key={key} className={`rounded-sm px-0.5 ${look}`}>
        {text}
      </mark>
    ) : (
      text
    );
  });
}
