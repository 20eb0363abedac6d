import type { JsonObject } from "../src/domain/json.ts";
import type { Operation } from "./plan/plan.ts";

/** The outcome of one operation, as the client saw it. */
export type Entry = {
  operation: Operation;
  /** The body of the 2xx response. */
  answer: JsonObject | null;
  /** The status of the response that refused it. */
  refused: number | null;
  /** An attempt broke off, or the response said that the store is unreachable: it may have taken effect. */
  doubtful: boolean;
};

/** The responses that clients received, checked at the end as promises. */
export class Ledger {
  readonly entries: Entry[] = [];
  readonly #createdIds = new Set<string>();

  add(entry: Entry): void {
    this.entries.push(entry);
    if (entry.answer === null) return;
    if (entry.operation.kind === "create") this.#createdIds.add(entry.operation.body.session_id);
    if (entry.operation.kind === "fork") this.#createdIds.add(entry.operation.fork_id);
  }

  /** Whether the session's creation was acknowledged, so that a 404 is wrong from then on. */
  knows(session_id: string): boolean {
    return this.#createdIds.has(session_id);
  }

  of<Kind extends Operation["kind"]>(kind: Kind): (Entry & { operation: Extract<Operation, { kind: Kind }> })[] {
    return this.entries.filter(({ operation }) => operation.kind === kind) as (Entry & {
      operation: Extract<Operation, { kind: Kind }>;
    })[];
  }
}
