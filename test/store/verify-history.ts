import assert from "node:assert/strict";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import type { Store } from "../../src/store/store.ts";
import { attemptIn, type ReadSession, readPages } from "./read-session.ts";
import { verifyActions, verifyMessages } from "./verify-conversation.ts";
import {
  type Attempt,
  conversationIdOf,
  keyOf,
  laneNames,
  lengthOf,
  sessionIdOf,
  stateOf,
  textOf,
} from "./written-history.ts";

/** What was acknowledged to the writer: for each session its commits, and the name of the acknowledged attempt. */
export type Acknowledged = Map<string, Map<string, string>>;

export function acknowledge(acknowledged: Acknowledged, { session_id, key, name }: Omit<Attempt, "batch">): void {
  const commits = acknowledged.get(session_id) ?? new Map<string, string>();
  acknowledged.set(session_id, commits.set(key, name));
}

export type ReadHistory = { sessions: number; steps: number; messages: number; commits: Map<string, string> };

export type Verification = {
  lanes: number;
  acknowledged: Acknowledged;
  /** Ended sessions that were already verified; they are not read again. Those verified now are added. */
  settled?: Set<string>;
};

/** Throws unless the store has every acknowledged commit once, and no partial commit. */
export async function verifyHistory(store: Store, verification: Verification): Promise<ReadHistory> {
  const { acknowledged, settled = new Set() } = verification;
  const history: ReadHistory = { sessions: 0, steps: 0, messages: 0, commits: new Map() };
  const counted = { running: 0, done: 0, unprocessed: 0 };
  for (const lane of laneNames(verification.lanes)) {
    for (const session of await readSessions(store, lane)) {
      counted[session.status as "running" | "done"] += 1;
      if (settled.has(session.session_id)) continue;
      const read = await verifySession(store, session);
      history.sessions += 1;
      history.steps += read.steps.length;
      history.messages += await verifyMessages(store, read);
      counted.unprocessed += read.actions.filter((action) => !action.processed).length;
      for (const [key, name] of read.commits) history.commits.set(key, name);
      if (session.status === "done") settled.add(session.session_id);
      verifyAcknowledged(acknowledged.get(session.session_id) ?? new Map(), read.commits);
    }
  }
  for (const [session_id, commits] of acknowledged) {
    if (!settled.has(session_id)) verifyAcknowledged(commits, history.commits);
  }
  const counts = await store.counts();
  assert.equal(counts.sessions.running, counted.running, "running sessions are counted right");
  assert.equal(counts.sessions.done, counted.done, "ended sessions are counted right");
  assert.equal(counts.queue_depth, counted.unprocessed, "unprocessed actions are counted right");
  return history;
}

function verifyAcknowledged(acknowledged: ReadonlyMap<string, string>, commits: ReadonlyMap<string, string>): void {
  for (const [key, name] of acknowledged) {
    assert.ok(commits.has(key), `lost: the ${key} was acknowledged and is gone`);
    assert.equal(commits.get(key), name, `the ${key} is there, but not from the attempt that was acknowledged`);
  }
}

/** The lane's sessions, oldest first. Asserts that the agent's row agrees with them. */
async function readSessions(store: Store, lane: string): Promise<Session[]> {
  const sessions = await readPages((page) => store.listSessions({ agent_id: lane, ...page }));
  const agent = await store.getAgent(lane);
  assert.equal(agent?.session_count ?? 0, sessions.length, `${lane} counts its sessions right`);
  if (agent === null) return [];
  assert.deepEqual(agent.latest, sessions[0], `the latest session of ${lane} is the newest one`);
  const config = await store.getAgentConfig(lane);
  assert.equal(config?.description, sessions[0]?.params["attempt"], `${lane} has the config of its newest session`);
  sessions.reverse();
  for (const [generation, session] of sessions.entries()) {
    assert.equal(session.session_id, sessionIdOf(lane, generation), `${lane} has each session once`);
    const status = generation < sessions.length - 1 || session.iteration + 1 === lengthOf(lane) ? "done" : "running";
    assert.equal(session.status, status, session.session_id);
  }
  return sessions;
}

async function verifySession(store: Store, session: Session): Promise<ReadSession> {
  const { session_id } = session;
  const conversation = await store.getConversation(conversationIdOf(session_id));
  const participants = await store.listParticipants(conversationIdOf(session_id));
  const created = session.params["attempt"] as string;
  assert.equal(conversation?.created_by, created, `${session_id} and its conversation are of one commit`);
  const roles = participants.map((participant) => participant.role);
  assert.deepEqual(roles, [created], `${session_id} and its participant are of one commit`);

  const steps = await readPages((page) => store.listSteps({ session_id, ...page }));
  const actions = await readPages((page) => store.listActions({ session_id, ...page }));
  const read = { session, steps, actions, commits: new Map([[keyOf.creation(session_id), created]]) };
  verifySteps(read);
  assert.deepEqual(await store.latestStep({ session_id }), steps.at(-1) ?? null, `${session_id}: latest step`);
  verifyActions(read);
  return read;
}

function verifySteps({ session, steps, commits }: ReadSession): void {
  const { session_id } = session;
  let last: Step | null = null;
  for (const step of steps) {
    const iteration: number = last === null ? 0 : last.iteration + 1;
    const where = `${session_id} at ${iteration}`;
    assert.equal(step.iteration, iteration, `${where}: no gap, no repeat (found the ${step.status} step ${step.id})`);
    assert.equal(step.step_token, String(iteration), `${where}: step token`);
    assert.equal(step.agent_id, session.agent_id, `${where}: agent`);
    const name = attemptIn(step.data);
    const failed = step.status === "error";
    assert.deepEqual(step.state, stateOf(session_id, failed ? iteration - 1 : iteration), `${where}: state`);
    assert.equal(step.text, failed ? null : textOf(session_id, iteration), `${where}: text`);
    const key = failed ? keyOf.failure(session_id, iteration, name) : keyOf.step(session_id, iteration);
    assert.ok(!commits.has(key), `doubled: the ${key} is there twice`);
    commits.set(key, name);
    if (!failed) last = step;
  }
  assert.equal(session.iteration, last?.iteration ?? -1, `${session_id} stands at its last step`);
  assert.equal(session.next_step_token, last?.next_step_token ?? "0", `${session_id}: next step token`);
  assert.deepEqual(session.context, stateOf(session_id, session.iteration), `${session_id}: context`);
  assert.deepEqual(session.result, last?.data ?? null, `${session_id} and its last step are of one commit`);
}
