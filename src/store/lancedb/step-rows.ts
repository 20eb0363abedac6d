import { setImmediate as nextTick } from "node:timers/promises";
import type { Step } from "../../domain/step.ts";
import { type Chain, readState } from "../state-chain.ts";
import type { StepPage } from "./history.ts";
import { type StoredRows, toRow, type Values } from "./tables.ts";

type StepRow = StoredRows["agent_steps"];

/** Milliseconds of decoding after which others get their turn: a page of large states must not hold up the program. */
const SLICE_MS = 10;

/** Rows as they are stored become steps with whole states. */
export async function decodeSteps(page: StepPage): Promise<Step[]> {
  const chains = new Map<string, Chain>();
  const steps: Step[] = [];
  let started = performance.now();
  for (const { step, before } of page) {
    for (const values of before) {
      extend(chains, toRow("agent_steps", values));
      started = await breathe(started);
    }
    steps.push(decode(chains, step));
    started = await breathe(started);
  }
  return steps;
}

function decode(chains: Map<string, Chain>, values: Values): Step {
  const row = toRow("agent_steps", values);
  const { pos: _, state_kind: __, base_iteration: ___, ...step } = row;
  // An error row stands beside the chain: its state is whole, and the next step does not build on it.
  const { state } = row.status === "error" ? readState(null, row) : extend(chains, row);
  return { ...step, state };
}

function extend(chains: Map<string, Chain>, row: StepRow): Chain {
  const chain = readState(chains.get(row.session_id) ?? null, row);
  chains.set(row.session_id, chain);
  return chain;
}

async function breathe(started: number): Promise<number> {
  if (performance.now() - started < SLICE_MS) return started;
  await nextTick();
  return performance.now();
}
