import { newId } from "../../domain/ids.ts";
import type { StepContext } from "../moniker.ts";

/**
 * The same for every attempt at a step, so that a worker can tell that it has done the step before. A step that only runs once
 * more to be looked at has another one each time.
 */
export function requestId({ ids: { session_id, iteration }, is_rerun }: Pick<StepContext, "ids" | "is_rerun">): string {
  const id = `${headerText(session_id)}/${iteration}`;
  return is_rerun ? `rerun/${newId()}/${id}` : id;
}

/** A header has visible ASCII only: what else is in an id is percent-encoded, and so is the percent sign. */
const headerText = (text: string): string => text.replaceAll(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);
