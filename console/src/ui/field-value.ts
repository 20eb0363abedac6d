import type { JsonSchema } from "../data/queries.ts";

/** Texts that may be at least this long get a field of several lines. */
export const LONG_TEXT = 1001;

type FieldKind = "choice" | "choices" | "flag" | "number" | "json" | "moment" | "long text" | "text";

export function kindOf(schema: JsonSchema): FieldKind {
  const { type, maxLength, format } = schema;
  if (type === "array" && schema.items && listedIn(schema.items).length > 0) return "choices";
  if (listedIn(schema).length > 0) return "choice";
  if (type === "boolean") return "flag";
  if (type === "number" || type === "integer") return "number";
  if (type !== "string") return "json";
  if (format === "date-time") return "moment";
  return maxLength !== undefined && maxLength >= LONG_TEXT ? "long text" : "text";
}

/** Whether a field may be left empty because its default then counts. A list that must not be empty has none. */
export const hasFallback = ({ default: fallback, minItems = 0 }: JsonSchema): boolean =>
  fallback !== undefined && minItems === 0;

/** The values that a field is limited to, with their labels; none where it is open. */
export function listedIn(schema: JsonSchema): { value: string; label: string }[] {
  const titled = schema.oneOf ?? schema.anyOf;
  if (titled?.every((one) => one.const !== undefined))
    return titled.map((one) => ({ value: String(one.const), label: one.title ?? String(one.const) }));
  return (schema.enum ?? []).map((one) => ({ value: String(one), label: String(one) }));
}

/** The value of a field; undefined where it was left empty. Throws on invalid JSON. */
export function valueIn(form: FormData, name: string, schema: JsonSchema): unknown {
  const kind = kindOf(schema);
  if (kind === "flag") return form.has(name);
  if (kind === "choices") return form.has(name) ? form.getAll(name) : undefined;
  const text = textIn(form, name);
  if (text === "") return undefined;
  if (kind === "number") return Number(text);
  if (kind === "moment") return new Date(text).toISOString();
  return kind === "json" ? (JSON.parse(text) as unknown) : text;
}

export function textIn(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}

/** A time in the reader's zone, in the format of the browser's date field. */
export function localMoment(iso: string): string {
  const moment = new Date(iso);
  if (Number.isNaN(moment.getTime())) return "";
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
