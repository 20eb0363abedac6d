import { isLive } from "../../domain/session.ts";
import type { Batch } from "../store.ts";

/** A session that is created along with its action, and as nobody's, becomes the taker's own, so that it need not be claimed. */
export function withOwner(batch: Batch, taker: string | null): Batch {
  const [write, more] = batch.sessions ?? [];
  if (taker === null || write?.kind !== "create" || more || write.worker !== null) return batch;
  const { created_action_id, status } = write.session;
  const waits = batch.actions?.some(({ action_id, processed }) => action_id === created_action_id && !processed);
  return waits && isLive(status) ? { ...batch, sessions: [{ ...write, worker: taker }] } : batch;
}
