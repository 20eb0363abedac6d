import { setImmediate as nextTick } from "node:timers/promises";
import { copyJson } from "../domain/json.ts";
import type { Step } from "../domain/step.ts";
import type { PortRows, StoredRows } from "./schema.ts";
import { type Chain, readState } from "./state-delta.ts";
import type { StepFilter } from "./store.ts";

/** A session of a fork's line. `parent_iteration` is the last iteration that it shares with its parent. */
export type Ancestor = { session_id: string; parent_iteration: number | null; error_rows: number };
/** A stretch of a session's own iterations, both ends included. A fork's history is a list of them. */
export type Stretch = { session_id: string; first: number; last: number };
type Lineage = { stretches: Stretch[]; hasErrors: boolean };

/** The iterations of a session that are its own, its parent's, and so on. */
export function lineageOf(line: readonly Ancestor[]): Lineage {
  const stretches: Stretch[] = [];
  let last = Number.MAX_SAFE_INTEGER;
  for (const { session_id, parent_iteration } of line) {
    const shared = parent_iteration ?? -1;
    stretches.push({ session_id, first: shared + 1, last });
    last = Math.min(last, shared);
  }
  return { stretches, hasErrors: line.some(({ error_rows }) => error_rows > 0) };
}

/** The iterations that a filter asks for, both ends included. */
export function iterationsOf({ min_iteration, after_iteration, max_iteration }: StepFilter): {
  from: number;
  to: number;
} {
  return {
    from: Math.max(0, min_iteration ?? 0, (after_iteration ?? -1) + 1),
    to: max_iteration ?? Number.MAX_SAFE_INTEGER,
  };
}

/**
 * Where a page of a session's steps is. Iterations have no gaps, so an offset into them is a range, which an index finds at
 * once: `isExact` says that the parts are the page. Where failed attempts come between, the offset counts rows within the parts.
 */
export type PageParts = { parts: Stretch[]; first: number; offset: number; isExact: boolean };

export function pageParts(filter: StepFilter, { stretches, hasErrors }: Lineage): PageParts {
  const { from, to } = iterationsOf(filter);
  const isBounded = filter.since_created_at === undefined && filter.status !== "error";
  const isExact = isBounded && (!hasErrors || filter.status === "ok");
  const first = isExact ? from + filter.offset : from;
  const last = isBounded ? Math.min(to, from + filter.offset + filter.limit - 1) : to;
  const parts = stretches
    .map((part) => ({ ...part, first: Math.max(part.first, first), last: Math.min(part.last, last) }))
    .filter((part) => part.first <= part.last);
  return { parts, first, offset: isExact ? 0 : filter.offset, isExact };
}

/** A step as it is stored, with what the port has of it. */
export type StoredStep = {
  stored: Pick<StoredRows["agent_steps"], "session_id" | "status" | "state_kind" | "base_iteration" | "state">;
  port: PortRows["agent_steps"];
};
/** A stored step, and before it the ones that its state is rebuilt from where the page itself lacks them. */
export type StepWithBases = { step: StoredStep; bases: readonly StoredStep["stored"][] };

/** Milliseconds of decoding after which others get their turn: a page of large states must not hold up the program. */
const SLICE_MS = 10;

/** Steps as they are stored become steps with whole states. */
export async function decodeSteps(page: readonly StepWithBases[]): Promise<Step[]> {
  const chains = new Map<string, Chain>();
  const steps: Step[] = [];
  let started = performance.now();
  const yieldToOthers = async (): Promise<void> => {
    if (performance.now() - started < SLICE_MS) return;
    await nextTick();
    started = performance.now();
  };
  for (const { step, bases } of page) {
    for (const base of bases) {
      extend(chains, base);
      await yieldToOthers();
    }
    // An error row stands beside the chain: its state is whole, and the next step does not build on it.
    const { state } = step.stored.status === "error" ? readState(null, step.stored) : extend(chains, step.stored);
    // What did not change is shared along a chain; who reads gets a state of their own.
    steps.push({ ...step.port, state: copyJson(state) });
    await yieldToOthers();
  }
  return steps;
}

function extend(chains: Map<string, Chain>, stored: StoredStep["stored"]): Chain {
  const chain = readState(chains.get(stored.session_id) ?? null, stored);
  chains.set(stored.session_id, chain);
  return chain;
}
