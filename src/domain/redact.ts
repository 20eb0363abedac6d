/**
 * What is printed, logged, stored or answered never carries the credentials of a URL.
 *
 * REDACT-1  Everything between a scheme and the last `@` of a word is hidden, whether or not it is a well-formed URL: a
 *           password with a slash in it is one that URL parsers take for a path.
 * REDACT-2  So are the values of query parameters whose names speak of a secret.
 * REDACT-3  The work grows with the length of the text, whatever is in it.
 */
const HIDDEN = "…";
const WORD = /[^\s"'`<>()]+/g;
const SECRET_PARAMETER = /token|key|secret|pass|signature|credential|auth/i;

/** A text with the credentials of every URL in it hidden. */
export const redactUrls = (text: string): string =>
  // Most texts have neither: they are returned as they are.
  text.includes("@") || text.includes("=") ? text.replaceAll(WORD, redactUrl) : text;

/** The same for one value that is known to be meant as a URL, spaces and quotes in it included. */
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
