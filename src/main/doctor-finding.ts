import { EverstepError } from "../domain/errors.ts";
import { redactUrls } from "../domain/redact.ts";

/** What a check found. `next` is what a person can do about it. */
export type Finding = { state: "ok"; text: string } | { state: "note" | "broken"; text: string; next: string };
/** An error as a finding: what a start would say. */
export function broken(error: unknown): Finding {
  if (!(error instanceof EverstepError))
    return { state: "broken", text: redactUrls(String(error)), next: "report it if it makes no sense to you" };
  const text = error.message.replace(/^\w+: /, "").replace(`; ${redactUrls(error.next)}`, "");
  return { state: "broken", text, next: redactUrls(error.next) };
}
