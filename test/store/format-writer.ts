import { newId } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { OwnedSession, Store } from "../../src/store/store.ts";
import { type Dump, dumpStore } from "./dump-store.ts";
import {
  aConversation,
  aCursor,
  aFork,
  aMessage,
  anAction,
  anAgentConfig,
  aParticipant,
  aSession,
  aTime,
  consumed,
  deliver,
  failedStep,
  mustAdvance,
  mustCommit,
  mustCreate,
  settled,
} from "./fixtures.ts";

/** Sent when the folder is filled; the process then waits for its SIGKILL with everything open. */
export type FilledReport = { dump: Dump };

const TEXTS = [
  "plain",
  "Grüße, žluťoučký кот 猫",
  "\uFEFFa byte order mark",
  'a "quote" and a\nnew line',
  "'; DROP",
  "",
];

/** Large enough that most steps are stored as deltas. */
const stateAt = (n: number): JsonObject => ({
  n,
  plan: Array.from({ length: 20 }, (_, at) => ({ at, done: at < n, note: `point ${at} of the plan` })),
  last: TEXTS[n % TEXTS.length] ?? "",
});

async function advanceBy(store: Store, owned: OwnedSession, steps: number): Promise<OwnedSession> {
  let now = owned;
  for (let step = 0; step < steps; step += 1) {
    const n = now.session.iteration + 1;
    const text = n % 7 === 6 ? null : `${TEXTS[n % TEXTS.length]} ${n}`;
    now = (await mustAdvance(store, now, { text, state: stateAt(n), data: n % 3 === 0 ? { n } : null })).owned;
    if (n % 10 === 4) {
      const failed = failedStep(now);
      await mustCommit(store, failed.batch);
      now = failed.owned;
    }
  }
  return now;
}

async function guide(store: Store, owned: OwnedSession): Promise<OwnedSession> {
  const { agent_id, session_id } = owned.session;
  const action = anAction({ agent_id, session_id, payload: { guidance: "be brief" }, metadata: { user_id: "ana" } });
  await mustCommit(store, { actions: [action] });
  const delivered = deliver(owned, action);
  await mustCommit(store, delivered.batch);
  const { iteration } = delivered.owned.session;
  const next = await mustAdvance(store, delivered.owned, { actions: [consumed(delivered.action, iteration + 1)] });
  return next.owned;
}

type Filled = { talker: OwnedSession; fork: OwnedSession; paused: OwnedSession; conversation_id: string };

/** Sessions of every kind, forks of forks, error rows, a conversation. */
async function writeFirstHalf(store: Store): Promise<Filled> {
  const conversation = aConversation({ title: "Tea & Käse", created_by: "ana", tags: ["a", "ü"] });
  const { conversation_id } = conversation;
  await mustCommit(store, { conversations: [{ kind: "create", conversation }] });
  await mustCommit(store, {
    participants: [aParticipant({ conversation_id }), aParticipant({ conversation_id, left_at: aTime() })],
  });
  for (const text of TEXTS)
    await mustCommit(store, { messages: [aMessage({ conversation_id, text, data: { text } })] });
  await mustCommit(store, {
    agent_configs: [anAgentConfig({ params: { upto: 9 } }), anAgentConfig({ agent_id: "agent-2" })],
  });
  const talker = await advanceBy(store, await mustCreate(store, aSession({ conversation_id })), 30);
  const [at] = await store.listSteps({ session_id: talker.session.session_id, min_iteration: 20, limit: 1, offset: 0 });
  if (!at) throw new Error("the step to fork from is missing");
  const fork = await advanceBy(store, await mustCreate(store, aFork(talker.session, at)), 12);
  const done = await advanceBy(store, await mustCreate(store, aSession({ params: { topic: "tea" } })), 8);
  await mustAdvance(store, done, { session: { status: "done", ended_at: aTime() } });
  const paused = await advanceBy(store, await mustCreate(store, aSession({ agent_id: "agent-2" })), 5);
  await mustCommit(store, { cursors: [aCursor({ session_id: talker.session.session_id, conversation_id })] });
  return { talker: await guide(store, talker), fork, paused, conversation_id };
}

/** Rows that are still in the journal when the process dies, in addition to the archived ones. */
async function writeSecondHalf(store: Store, { talker, fork, paused, conversation_id }: Filled): Promise<void> {
  const further = await guide(store, await advanceBy(store, talker, 15));
  const { agent_id, session_id } = further.session;
  const [at] = await store.listSteps({ session_id: fork.session.session_id, min_iteration: 25, limit: 1, offset: 0 });
  if (!at) throw new Error("the step to fork from is missing");
  await advanceBy(store, await mustCreate(store, aFork(fork.session, at)), 3);
  const still = { ...paused.session, status: "paused" as const, updated_at: aTime() };
  await mustCommit(store, { sessions: [{ kind: "update", session: still, owner: paused.owner }] });
  const stopped = aSession({ status: "stopped", stop_reason: "max_steps", ended_at: aTime() });
  await mustCommit(store, { sessions: [{ kind: "create", session: stopped, worker: null }] });
  await mustCommit(store, { messages: [aMessage({ conversation_id, text: "after the move" })] });
  const archived = aConversation({ status: "archived" });
  await mustCommit(store, { conversations: [{ kind: "create", conversation: archived }] });
  const waiting = anAction({ agent_id, session_id, payload: { guidance: "never taken" } });
  const retry = anAction({ session_id: newId(), attempts: 2, run_at: aTime(), error: "not yet" });
  const undelivered = settled(anAction({ agent_id, session_id, urgency: 5 }));
  await mustCommit(store, {
    actions: [waiting, retry, undelivered, settled(anAction({ session_id }), { receipt: "bounced" })],
  });
  await mustCommit(store, { cursors: [aCursor({ session_id, conversation_id })] });
}

const store = await openEmbeddedStore({ folder: process.argv[2] ?? "", tuning: { move_after_ms: 3_600_000 } });
const filled = await writeFirstHalf(store);
await store.checkpoint();
await writeSecondHalf(store, filled);
const report: FilledReport = { dump: await dumpStore(store) };
process.send?.(report);
