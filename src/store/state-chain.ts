import type { JsonObject } from "../domain/json.ts";
import { applyDelta, type Changes, diff } from "./state-delta.ts";

/**
 * How the states of a session's steps are stored: a whole one, then differences, each from the step before.
 *
 * CHAIN-1  A state is stored whole again once the differences since the last whole one add up to its size. So what is stored
 *     stays within a few times what changed, and any state is rebuilt from at most about twice its own size.
 * CHAIN-2  A step whose predecessor is not at hand is stored whole. Nothing else depends on having it at hand.
 * CHAIN-3  A chain's state is made from the stored text, so that nobody else holds what the next difference is taken from.
 */
export type StoredState = {
  state_kind: "whole" | "delta";
  /** The iteration of the whole state that this one is rebuilt from; its own for a whole one. */
  base_iteration: number;
  /** JSON text of the state or of the difference. */
  state: string;
};

/**
 * Where a chain stands: what the next difference is taken from. Sizes are characters of JSON text. A reader does not
 * follow how the state grows, so `size` is that of the whole state until the chain is measured to be written on.
 */
export type Chain = { state: JsonObject; base_iteration: number; size: number; spent: number; measured: boolean };

/** What a row costs beside its text. It keeps chains of tiny differences short. */
const ROW_OVERHEAD = 64;

export function storeState(
  last: Chain | null,
  state: JsonObject,
  iteration: number,
): { stored: StoredState; chain: Chain } {
  const chain = last && measure(last);
  // A state this small is cheaper to write than to compare.
  const change = chain && chain.size > ROW_OVERHEAD ? difference(chain.state, state) : null;
  if (!chain || !change) return storeWhole(state, iteration);
  const { text, growth } = change;
  const { base_iteration } = chain;
  const size = Math.max(2, chain.size + growth);
  // CHAIN-1: what shrank counts as spent too, for a reader still meets it in the whole state.
  const spent = chain.spent + text.length + ROW_OVERHEAD + Math.max(0, -growth);
  if (spent >= size) return storeWhole(state, iteration);
  return {
    stored: { state_kind: "delta", base_iteration, state: text },
    chain: { state: applyDelta(chain.state, JSON.parse(text) as Changes), base_iteration, size, spent, measured: true },
  };
}

function measure(chain: Chain): Chain {
  if (chain.measured) return chain;
  const size = JSON.stringify(chain.state).length;
  return { ...chain, size, spent: chain.spent + Math.max(0, chain.size - size), measured: true };
}

function difference(before: JsonObject, after: JsonObject): { text: string; growth: number } | null {
  try {
    const change = diff(before, after);
    return change && { text: JSON.stringify(change.delta), growth: change.growth };
  } catch (error) {
    // A difference is nested deeper than its state, so the stack may hold the one and not the other.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

export function storeWhole(state: JsonObject, iteration: number): { stored: StoredState; chain: Chain } {
  const text = JSON.stringify(state);
  return {
    stored: { state_kind: "whole", base_iteration: iteration, state: text },
    chain: {
      state: JSON.parse(text) as JsonObject,
      base_iteration: iteration,
      size: text.length,
      spent: 0,
      measured: true,
    },
  };
}

/** The next state of a chain that is read in order of iterations, and where the chain then stands. */
export function readState(chain: Chain | null, stored: StoredState): Chain {
  if (stored.state_kind === "whole") {
    const state = JSON.parse(stored.state) as JsonObject;
    return { state, base_iteration: stored.base_iteration, size: stored.state.length, spent: 0, measured: true };
  }
  if (!chain) throw new Error(`a difference from iteration ${stored.base_iteration} was read without its base`);
  const state = applyDelta(chain.state, JSON.parse(stored.state) as Changes);
  const spent = chain.spent + stored.state.length + ROW_OVERHEAD;
  return { ...chain, state, spent, measured: false };
}
