/** Worst-case estimates for Marked's rules, in characters scanned. */

type Kind = "word" | "space" | "mark";

/** Each mark may search the whole text for its partner; a run may be rescanned from each of its characters. */
export function inlineCost(text: string): number {
  let marks = 0;
  let ofRuns = 0;
  let run = 0;
  let kind: Kind = "space";
  for (let index = 0; index < text.length; index++) {
    const next = kindOf(text.charCodeAt(index));
    if (next === "mark") marks += 1;
    if (next !== kind) {
      ofRuns += run * run;
      run = 0;
      kind = next;
    }
    run += 1;
  }
  return text.length + marks * text.length + ofRuns + run * run;
}

/** The characters at which an inline rule may begin. */
const MARKS = new Set(Array.from("*_~[]()!<>&@\\`?:", (character) => character.charCodeAt(0)));

function kindOf(code: number): Kind {
  if (code <= 0x20) return "space";
  return MARKS.has(code) ? "mark" : "word";
}

const ITEM = /^(?:[*+-]|\d{1,9}[.)])(?:[ \t]|$)/;
/** Scanning lines is this much cheaper than matching marks. */
const CHARACTERS_PER_UNIT = 8;

/** Each line that continues an item scans everything after it. */
export function listCost(text: string): number {
  let lines = 0;
  let mostLines = 0;
  let isAfterBlank = false;
  let at = 0;
  while (at < text.length) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline;
    const line = text.slice(at, end);
    const isItem = ITEM.test(line);
    // An unindented line after a blank one ends the list.
    if (isAfterBlank && !isItem && line !== "" && line[0] !== " " && line[0] !== "\t") break;
    lines = isItem ? 0 : lines + 1;
    mostLines = Math.max(mostLines, lines);
    isAfterBlank = line.trim() === "";
    at = end + 1;
  }
  return at + (mostLines * at) / CHARACTERS_PER_UNIT;
}
