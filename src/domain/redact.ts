/**
 * Keeps the credentials of URLs out of everything that is printed, logged, stored or sent to a client.
 *
 * REDACT-1  Everything between a scheme and the last `@` of a word is hidden, well-formed URL or not: URL parsers take a
 *           password that contains a slash for a path.
 * REDACT-2  So are the values of query parameters whose names suggest a secret.
 * REDACT-3  The work is linear in the length of the text.
 */
const HIDDEN = "…";
const WORD = /[^\s"'`<>()]+/g;
const SECRET_PARAMETER = /token|key|secret|pass|signature|credential|auth/i;

/** Hides the credentials of every URL in a text. */
export const redactUrls = (text: string): string =>
  // Fast path: most texts contain neither.
  text.includes("@") || text.includes("=") ? text.replaceAll(WORD, redactUrl) : text;

/** The same for a single value meant as a URL, including any spaces and quotes in it. */
export function redactUrl(url: string): string {
  return withoutSecretParameters(withoutUserInfo(url));
}

/** REDACT-1. A user id such as `@name:server` has its only `@` before the colon. */
function withoutUserInfo(word: string): string {
  const end = word.lastIndexOf("@");
  const slashes = word.indexOf("://");
  const colon = word.indexOf(":");
  const start = slashes >= 0 ? slashes + 3 : colon + 1;
  return start > 0 && start < end ? `${word.slice(0, start)}${HIDDEN}${word.slice(end)}` : word;
}

/** REDACT-2. */
function withoutSecretParameters(word: string): string {
  if (!word.includes("?")) return word;
  return word
    .split(/(?<=[?&])/)
    .map((part, index) => (index === 0 ? part : withoutSecretValue(part)))
    .join("");
}

function withoutSecretValue(parameter: string): string {
  const equals = parameter.indexOf("=");
  if (equals < 0 || !SECRET_PARAMETER.test(parameter.slice(0, equals))) return parameter;
  const after = parameter.slice(equals + 1);
  const end = after.search(/[&#]/);
  return `${parameter.slice(0, equals + 1)}${HIDDEN}${end < 0 ? "" : after.slice(end)}`;
}
