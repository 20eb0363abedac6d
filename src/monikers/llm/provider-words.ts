import { redactUrls } from "../../domain/redact.ts";

const LONGEST = 500;
/** Letters and digits in a row that are no coincidence. */
const RUN = 12;
const HIDDEN = "…";

/**
 * What a provider says of a failure, for rows, logs and people. Providers repeat the request in their errors.
 *
 * PROVIDER-1  The key is hidden, also in part: words that begin or end like it, and those with asterisks in their middle.
 * PROVIDER-2  Where the text begins to repeat what the model was told, it ends. Case, escapes and punctuation do not matter.
 * PROVIDER-3  No URL's credentials (`redactUrls`).
 */
export function providerWords(said: string, key: unknown, told: readonly string[]): string {
  // More than is kept: what is hidden makes it shorter.
  const withoutKey = hideKey(said.slice(0, LONGEST * 8), typeof key === "string" ? key : "");
  return redactUrls(beforeEcho(withoutKey, told)).slice(0, LONGEST);
}

/** PROVIDER-1. */
function hideKey(said: string, key: string): string {
  const whole = key === "" ? said : said.replaceAll(key, HIDDEN).replaceAll(encodeURIComponent(key), HIDDEN);
  const isLong = key.length >= 12;
  return whole.replaceAll(/[^\s"'`,;:()<>{}[\]]{6,}/g, (word) => {
    const isMasked = /[^*]\*{2,}/.test(word);
    const isPart = isLong && (word.includes(key.slice(0, 8)) || word.includes(key.slice(-8)));
    return isMasked || isPart ? HIDDEN : word;
  });
}

/** PROVIDER-2. */
function beforeEcho(said: string, told: readonly string[]): string {
  const compared = plain(said);
  const runs = new Map<string, number>();
  for (let at = 0; at + RUN <= compared.text.length; at++) {
    const run = compared.text.slice(at, at + RUN);
    if (!runs.has(run)) runs.set(run, at);
  }
  let first = compared.text.length;
  for (const text of told) {
    const heard = plain(text).text;
    // A text that is too short to have a run is looked for whole.
    if (heard.length < RUN && heard.length >= 4 && compared.text.includes(heard))
      first = Math.min(first, compared.text.indexOf(heard));
    for (let at = 0; at + RUN <= heard.length; at++)
      first = Math.min(first, runs.get(heard.slice(at, at + RUN)) ?? first);
  }
  return first === compared.text.length ? said : `${said.slice(0, compared.places[first])}${HIDDEN}`;
}

/** Letters and digits alone, folded, and where in the text each of them is. Escapes of JSON are no letters. */
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
