import { newId } from "../../domain/ids.ts";
import type { StepContext } from "../moniker.ts";

/**
 * The same for every attempt at a step, so that a worker can recognize a step it has already done. A rerun gets a new one each
 * time.
 */
export function requestId({ ids: { session_id, iteration }, is_rerun }: Pick<StepContext, "ids" | "is_rerun">): string {
  const id = `${headerText(session_id)}/${iteration}`;
  return is_rerun ? `rerun/${newId()}/${id}` : id;
}

/** Headers allow visible ASCII only: everything else in an id is percent-encoded, and so is the percent sign. */
const headerText = (text: string): string => text.replaceAll(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);
