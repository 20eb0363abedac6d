import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import type { Action } from "../../src/domain/action.ts";
import { newId } from "../../src/domain/ids.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import {
  type Advanced,
  type Attempt,
  actionIdOf,
  creation,
  delivery,
  failsFirst,
  failure,
  laneNames,
  nextStep,
  submission,
  takesGuidance,
} from "./written-history.ts";

export type WritingPlan = {
  lanes: number;
  /** Delay between two steps of a lane, in milliseconds. */
  pace_ms: number;
  /** Once aborted, lanes finish their current step and stop. */
  signal: AbortSignal;
  /** Called right after a commit was acknowledged. */
  acknowledge: (attempt: Attempt) => void;
  /** Called with what a commit threw; the commit is retried when it resolves. Without it the error ends the writing. */
  recover?: (error: unknown) => Promise<void>;
};

/** Continues the history in the store, all lanes at once, until the signal aborts. */
export async function writeHistory(store: Store, plan: WritingPlan): Promise<void> {
  const worker = newId();
  const broken = new AbortController();
  const inboxes = new Map<string, PromiseWithResolvers<Action>>();
  const inboxOf = (session_id: string): PromiseWithResolvers<Action> => {
    const inbox = inboxes.get(session_id) ?? Promise.withResolvers<Action>();
    inboxes.set(session_id, inbox);
    return inbox;
  };
  const dispatch = async (): Promise<void> => {
    const actions = await store.claimActions({ worker, limit: 100 });
    for (const action of actions) inboxOf(action.session_id).resolve(action);
  };
  const breakOff = (error: unknown): void => broken.abort(error);
  const failed = new Promise<never>((_, reject) => {
    broken.signal.addEventListener("abort", () => reject(broken.signal.reason as Error));
  });
  failed.catch(() => {});

  const receive = async (session_id: string): Promise<Action> => {
    const action = await Promise.race([inboxOf(session_id).promise, failed]);
    inboxes.delete(session_id);
    return action;
  };
  const stopListening = store.onWork(() => void dispatch().catch(breakOff));
  await dispatch();
  const writing = laneNames(plan.lanes).map((lane) =>
    runLane({ store, plan, worker, lane, receive, broken: broken.signal }).catch(breakOff),
  );
  await Promise.all(writing);
  stopListening();
  if (broken.signal.aborted) throw broken.signal.reason;
  await store.releaseSessions({ worker });
}

type Lane = {
  store: Store;
  plan: WritingPlan;
  worker: string;
  lane: string;
  receive: (session_id: string) => Promise<Action>;
  broken: AbortSignal;
};

async function runLane(run: Lane): Promise<void> {
  const { store, plan, worker, lane } = run;
  const agent = await store.getAgent(lane);
  let generation = agent ? Number(agent.latest.params["generation"]) : -1;
  let owned: OwnedSession | null = null;
  if (agent && agent.latest.status !== "done") {
    owned = await store.claimSession({ worker, session_id: agent.latest.session_id });
    assert.ok(owned, `${agent.latest.session_id} is owned by a writer that is gone`);
  }
  while (!plan.signal.aborted && !run.broken.aborted) {
    if (owned === null || owned.session.status === "done") {
      generation += 1;
      owned = await commitAdvance(run, creation(lane, generation, worker));
    }
    owned = await runIteration(run, owned);
    await pause(plan.pace_ms);
  }
}

async function runIteration(run: Lane, before: OwnedSession): Promise<OwnedSession> {
  let owned = before;
  const iteration = owned.session.iteration + 1;
  if (takesGuidance(iteration) && owned.session.pending_action_ids.length === 0) {
    const action_id = actionIdOf(owned.session.session_id, iteration);
    if ((await run.store.getAction(action_id)) === null) await commit(run, submission(owned));
    owned = await commitAdvance(run, delivery(owned, await run.receive(owned.session.session_id)));
  }
  if (failsFirst(iteration)) owned = await commitAdvance(run, failure(owned));
  const delivered = await Promise.all(owned.session.pending_action_ids.map((id) => mustGetAction(run.store, id)));
  return await commitAdvance(run, nextStep(owned, delivered));
}

async function mustGetAction(store: Store, action_id: string): Promise<Action> {
  const action = await store.getAction(action_id);
  assert.ok(action, `${action_id} is pending in its session but not in the queue`);
  return action;
}

async function commitAdvance(run: Lane, advanced: Advanced): Promise<OwnedSession> {
  await commit(run, advanced);
  return advanced.owned;
}

async function commit({ store, plan }: Lane, attempt: Attempt): Promise<void> {
  for (;;) {
    try {
      const outcome = await store.commit(attempt.batch);
      assert.deepEqual(outcome, { kind: "committed" }, `${attempt.key} was not committed`);
      break;
    } catch (error) {
      if (plan.recover === undefined || error instanceof assert.AssertionError) throw error;
      await plan.recover(error);
    }
  }
  plan.acknowledge(attempt);
}
