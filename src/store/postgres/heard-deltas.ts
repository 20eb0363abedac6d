import type { StepDelta } from "../../domain/event.ts";
import type { DeltaNews } from "./outbox.ts";

/** Steps whose text is followed at once; beyond that it begins anew. */
const MOST_STEPS = 2000;

/**
 * Text of steps as other processes tell it. Some of it may be lost on the way; then the rest of that step is left out after a delta
 * that is marked `truncated`, so that readers never get text with a hole in it.
 */
export class HeardDeltas {
  readonly #steps = new Map<string, { iteration: number; next_seq: number | null }>();

  /** What to hand on of it; null where there is nothing. */
  next({ delta, last_seq }: DeltaNews): StepDelta | null {
    const { session_id, iteration, event_seq, truncated } = delta;
    const known = this.#steps.get(session_id);
    const goesOn = event_seq > 0 && known?.iteration === iteration;
    if (goesOn && known.next_seq === null) return null;
    const hasHole = goesOn && known.next_seq !== event_seq;
    if (this.#steps.size >= MOST_STEPS && !known) this.#steps.clear();
    this.#steps.set(session_id, { iteration, next_seq: hasHole || truncated ? null : last_seq + 1 });
    const { tool: _, ...rest } = delta;
    return hasHole ? { ...rest, text: "", truncated: true } : delta;
  }
}
