const whole = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number): string => whole.format(value);
export const shortCount = (value: number): string => (value < 10_000 ? whole.format(value) : compact.format(value));
export const plural = (value: number, one: string, many = `${one}s`, exact = true): string =>
  `${whole.format(value)}${exact ? "" : "+"} ${value === 1 && exact ? one : many}`;

export function milliseconds(ms: number): string {
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}

/** Generated ids differ at the end, those of children in the numbers behind it; chosen ids are shown whole. */
export function shortId(id: string): string {
  const [, generated, child] = /^([0-9A-HJKMNP-TV-Z]{26})((?:\.\d+)*)$/.exec(id) ?? [];
  return generated === undefined ? id : `${generated.slice(-5)}${child}`;
}

export const bytes = (value: number): string =>
  value < 1024 * 1024 ? `${Math.ceil(value / 1024)} KB` : `${(value / 1024 / 1024).toFixed(0)} MB`;

/** Guidance as text: a string, the text of an object, an answer, the end of a child session, or JSON. */
export function spoken(guidance: unknown): string {
  if (typeof guidance === "string") return guidance;
  if (typeof guidance === "object" && guidance !== null) {
    if ("text" in guidance && typeof guidance.text === "string") return guidance.text;
    if ("answer" in guidance && "question_id" in guidance) return spoken(guidance.answer);
    if ("child" in guidance) return childEnd(guidance.child) ?? JSON.stringify(guidance);
  }
  return JSON.stringify(guidance);
}

/** How a child session ended. */
function childEnd(child: unknown): string | null {
  if (typeof child !== "object" || child === null) return null;
  const { agent_id, status, result, error } = child as Record<string, unknown>;
  if (typeof agent_id !== "string" || typeof status !== "string") return null;
  const said = error ?? result ?? null;
  return `${agent_id} ended (${status})${said === null ? "" : `: ${spoken(said)}`}`;
}

/** Dollars with cents from $1 on, otherwise with two significant digits. */
export const dollars = (amount: number): string =>
  amount >= 1 ? `$${amount.toFixed(2)}` : `$${Number(amount.toPrecision(2)).toString()}`;
