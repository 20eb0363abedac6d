import { redactUrls } from "../../domain/redact.ts";

const LONGEST = 500;
/** A match of this many letters and digits is no coincidence. */
const RUN = 12;
const HIDDEN = "…";

/**
 * A provider's error message, cleaned for rows, logs and people. Providers repeat the request in their errors.
 *
 * PROVIDER-1  The key is hidden, even in part: words that begin or end like it, and words with asterisks in the middle.
 * PROVIDER-2  The text ends where it begins to repeat the request. Case, escapes and punctuation do not matter.
 * PROVIDER-3  Credentials in URLs are hidden (`redactUrls`).
 */
export function providerMessage(message: string, key: unknown, sent: readonly string[]): string {
  // Longer than the result: hiding shortens it.
  const withoutKey = hideKey(message.slice(0, LONGEST * 8), typeof key === "string" ? key : "");
  return redactUrls(beforeEcho(withoutKey, sent)).slice(0, LONGEST);
}

/** PROVIDER-1. */
function hideKey(message: string, key: string): string {
  const whole = key === "" ? message : message.replaceAll(key, HIDDEN).replaceAll(encodeURIComponent(key), HIDDEN);
  const isLong = key.length >= 12;
  return whole.replaceAll(/[^\s"'`,;:()<>{}[\]]{6,}/g, (word) => {
    const isMasked = /[^*]\*{2,}/.test(word);
    const isPart = isLong && (word.includes(key.slice(0, 8)) || word.includes(key.slice(-8)));
    return isMasked || isPart ? HIDDEN : word;
  });
}

/** PROVIDER-2. */
function beforeEcho(message: string, sent: readonly string[]): string {
  const compared = plain(message);
  const runs = new Map<string, number>();
  for (let at = 0; at + RUN <= compared.text.length; at++) {
    const run = compared.text.slice(at, at + RUN);
    if (!runs.has(run)) runs.set(run, at);
  }
  let first = compared.text.length;
  for (const text of sent) {
    const sentText = plain(text).text;
    // A text too short for a run is searched as a whole.
    if (sentText.length < RUN && sentText.length >= 4 && compared.text.includes(sentText))
      first = Math.min(first, compared.text.indexOf(sentText));
    for (let at = 0; at + RUN <= sentText.length; at++)
      first = Math.min(first, runs.get(sentText.slice(at, at + RUN)) ?? first);
  }
  return first === compared.text.length ? message : `${message.slice(0, compared.places[first])}${HIDDEN}`;
}

/** Only letters and digits, case-folded, with the position of each in the text. JSON escapes do not count as letters. */
function plain(text: string): { text: string; places: number[] } {
  const places: number[] = [];
  let letters = "";
  for (const match of text.matchAll(/\\{1,4}(?:u[0-9a-f]{4}|[nrtbf"/])|[\p{L}\p{N}]/giu)) {
    if (match[0].startsWith("\\")) continue;
    const letter = match[0].toLowerCase();
    letters += letter;
    for (let at = 0; at < letter.length; at++) places.push(match.index);
  }
  return { text: letters, places };
}
