import { EverstepError } from "../domain/errors.ts";
import { redactUrls } from "../domain/redact.ts";

/** A check's result. `next` is what to do about it. */
export type Finding = { state: "ok"; text: string } | { state: "note" | "broken"; text: string; next: string };
/** An error as a finding, with the text a start would print. */
export function broken(error: unknown): Finding {
  if (!(error instanceof EverstepError))
    return { state: "broken", text: redactUrls(String(error)), next: "report it as a bug if it is unclear" };
  const text = error.message.replace(/^\w+: /, "").replace(`; ${redactUrls(error.next)}`, "");
  return { state: "broken", text, next: redactUrls(error.next) };
}
