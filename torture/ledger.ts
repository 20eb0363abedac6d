import type { JsonObject } from "../src/domain/json.ts";
import type { Operation } from "./plan/plan.ts";

/** What became of one operation, as the client saw it. */
export type Entry = {
  operation: Operation;
  /** The body of its 2xx answer. */
  answer: JsonObject | null;
  /** The status of an answer that refused it. */
  refused: number | null;
  /** At least one attempt broke off, or was answered that the store is out of reach: it may have had its effect. */
  doubtful: boolean;
};

/** What clients were told: the promises that are checked in the end. */
export class Ledger {
  readonly entries: Entry[] = [];
  readonly #known = new Set<string>();

  add(entry: Entry): void {
    this.entries.push(entry);
    if (entry.answer === null) return;
    if (entry.operation.kind === "create") this.#known.add(entry.operation.body.session_id);
    if (entry.operation.kind === "fork") this.#known.add(entry.operation.fork_id);
  }

  /** Whether the session was acknowledged, so that nobody may call it unknown any more. */
  knows(session_id: string): boolean {
    return this.#known.has(session_id);
  }

  of<Kind extends Operation["kind"]>(kind: Kind): (Entry & { operation: Extract<Operation, { kind: Kind }> })[] {
    return this.entries.filter(({ operation }) => operation.kind === kind) as (Entry & {
      operation: Extract<Operation, { kind: Kind }>;
    })[];
  }
}
