import assert from "node:assert/strict";
import { describe } from "node:test";
import { newId } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { Batch, CommitOutcome, OwnedSession, Store } from "../../../src/store/store.ts";
import {
  aConversation,
  aCursor,
  advance,
  aMessage,
  anAction,
  anAgentConfig,
  aSession,
  aStep,
  aTime,
  mustAdvance,
  mustCommit,
  mustCreate,
  settled,
  WORKER,
} from "../fixtures.ts";
import { type ClaimTest, describeClaims, IN_ORDER, type OpenStore, testOnFreshStore } from "./opened-store.ts";
import { aWorld, batchOf, joined, NOTHING, readWorld } from "./world.ts";

type Conflict = { batch: Batch; outcome: CommitOutcome };

const fenced = ({ session }: OwnedSession): CommitOutcome => ({ kind: "fenced", session_id: session.session_id });
const withIteration = (owned: OwnedSession, iteration: number): Session => ({ ...owned.session, iteration });

/** Every way in which a batch is refused, given a session at iteration 1. */
const CONFLICTS: Record<string, (store: Store, owned: OwnedSession) => Promise<Conflict>> = {
  "a step that leaves a gap": async (_store, owned) => {
    const { batch } = advance(owned, { step: { iteration: 3 } });
    return { batch, outcome: fenced(owned) };
  },
  "a step that repeats an iteration": async (_store, owned) => {
    const { batch } = advance(owned, { step: { iteration: 1 } });
    return { batch, outcome: fenced(owned) };
  },
  "a session row ahead of its steps": async (_store, owned) => {
    const { batch } = advance(owned, { session: { iteration: 3 } });
    return { batch, outcome: fenced(owned) };
  },
  "a session row behind its steps": async (_store, owned) => {
    const { batch } = advance(owned, { session: { iteration: 1 } });
    return { batch, outcome: fenced(owned) };
  },
  "a session row that moves on without a step": async (_store, owned) => ({
    batch: { sessions: [{ kind: "update", session: withIteration(owned, 2), owner: owned.owner }] },
    outcome: fenced(owned),
  }),
  "a session row that moves back": async (_store, owned) => ({
    batch: { sessions: [{ kind: "update", session: withIteration(owned, 0), owner: owned.owner }] },
    outcome: fenced(owned),
  }),
  "two steps of one iteration": async (_store, owned) => {
    const next = advance(owned);
    const twin: Step = { ...next.step, id: newId() };
    return { batch: { ...next.batch, steps: [next.step, twin] }, outcome: fenced(owned) };
  },
  "an owner of a later epoch than the session has": async (_store, owned) => {
    const { batch } = advance({ ...owned, owner: { ...owned.owner, epoch: owned.owner.epoch + 1 } });
    return { batch, outcome: fenced(owned) };
  },
  "a worker that does not own the session": async (_store, owned) => {
    const { batch } = advance({ ...owned, owner: { ...owned.owner, worker: "worker-2" } });
    return { batch, outcome: fenced(owned) };
  },
  "an update of a session that is not there": async () => {
    const unknown: OwnedSession = {
      session: aSession(),
      owner: { worker: WORKER, epoch: 1, revision: 0 },
      after_crash: false,
    };
    return { batch: advance(unknown).batch, outcome: fenced(unknown) };
  },
  "a session that exists": async (_store, { session }) => ({
    batch: { sessions: [{ kind: "create", session: aSession({ session_id: session.session_id }), worker: WORKER }] },
    outcome: { kind: "exists", table: "agent_state", id: session.session_id },
  }),
  "a conversation that exists": async (store) => {
    const conversation = aConversation({ title: "the first" });
    await mustCommit(store, { conversations: [{ kind: "create", conversation }] });
    const { conversation_id } = conversation;
    return {
      batch: { conversations: [{ kind: "create", conversation: aConversation({ conversation_id }) }] },
      outcome: { kind: "exists", table: "conversations", id: conversation_id },
    };
  },
  "a message that exists": async (store) => {
    const message = aMessage({ text: "the first" });
    await mustCommit(store, { messages: [message] });
    const { message_id } = message;
    return {
      batch: { messages: [aMessage({ message_id, conversation_id: "conversation-2" })] },
      outcome: { kind: "exists", table: "conversation_messages", id: message_id },
    };
  },
};

export function commits(open: OpenStore): void {
  describeClaims("a commit", open, (claim) => {
    claim("writes every row of every table as it was given", async (store) => {
      const world = aWorld();
      await mustCommit(store, batchOf(world));
      return async (reader) => assert.deepEqual(await readWorld(reader, world), world);
    });

    claim("writes every field of a step as it was given", async (store) => {
      const owned = await mustCreate(store);
      const full = await mustAdvance(store, owned, {
        text: "",
        data: [1, { two: null }],
        state: { deep: { list: [1, 2] } },
        step: { notes: "why", latency_ms: 12.5, tokens_used: 7, guidance: ["left", { a: 1 }], action_ids: ["a", "b"] },
      });
      const bare = await mustAdvance(store, full.owned, { text: null, state: {}, step: { latency_ms: 0 } });
      const { session_id } = owned.session;
      return async (reader) => {
        assert.deepEqual(await reader.listSteps({ session_id, limit: 10, offset: 0 }), [full.step, bare.step]);
        assert.deepEqual(await reader.getSession(session_id), bare.owned.session);
      };
    });

    for (const [what, conflict] of Object.entries(CONFLICTS)) {
      for (const place of ["first", "last"] as const) claimRefusal(claim, what, conflict, place);
    }

    claim("that was refused goes through once the conflict is gone", async (store) => {
      const first = await mustAdvance(store, await mustCreate(store), { state: { list: ["a"] } });
      const world = aWorld();
      const refused = joined(batchOf(world), advance(first.owned, { step: { iteration: 7 } }).batch);
      assert.equal((await store.commit(refused)).kind, "fenced");
      await mustCommit(store, batchOf(world));
      const next = await mustAdvance(store, first.owned, { state: { list: ["a", "b"] } });
      return async (reader) => {
        assert.deepEqual(await readWorld(reader, world), world);
        assert.deepEqual(await reader.latestStep({ session_id: next.step.session_id }), next.step);
      };
    });

    claim("creates a session once, however many want to at the same time", async (store) => {
      const rivals = Array.from({ length: 20 }, (_, at) => aSession({ session_id: "wanted", agent_id: `rival-${at}` }));
      const outcomes = await Promise.all(
        rivals.map((session) => store.commit({ sessions: [{ kind: "create", session, worker: WORKER }] })),
      );
      const winners = rivals.filter((_, at) => outcomes[at]?.kind === "committed");
      assert.equal(winners.length, 1);
      const losers = outcomes.filter(({ kind }) => kind !== "committed");
      const exists = { kind: "exists", table: "agent_state", id: "wanted" };
      assert.equal(losers.length, 19);
      for (const outcome of losers) assert.deepEqual(outcome, exists);
      return async (reader) => {
        assert.deepEqual(await reader.getSession("wanted"), winners[0]);
        for (const { agent_id } of rivals) {
          const expected = agent_id === winners[0]?.agent_id ? winners : [];
          assert.deepEqual(await reader.listSessions({ agent_id, limit: 10, offset: 0 }), expected);
        }
      };
    });

    claim("writes a message once, however often it is sent at the same time", async (store) => {
      const message = aMessage({ conversation_id: newId() });
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => store.commit({ messages: [message] })));
      assert.equal(outcomes.filter(({ kind }) => kind === "committed").length, 1);
      assert.equal(outcomes.filter(({ kind }) => kind === "exists").length, 19);
      const { conversation_id } = message;
      return async (reader) =>
        assert.deepEqual(await reader.listMessages({ conversation_id, limit: 10, offset: 0 }), [message]);
    });

    claim("may hold several steps of a session, and a new session together with its first ones", async (store) => {
      const born: OwnedSession = {
        session: aSession(),
        owner: { worker: WORKER, epoch: 1, revision: 0 },
        after_crash: false,
      };
      const one = advance(born);
      const two = advance(one.owned);
      const creation: Batch = {
        sessions: [{ kind: "create", session: two.owned.session, worker: WORKER }],
        steps: [one.step, two.step],
      };
      await mustCommit(store, creation);
      const three = advance({ ...two.owned, owner: born.owner });
      const four = advance({ ...three.owned, owner: born.owner });
      await mustCommit(store, { ...four.batch, steps: [three.step, four.step] });
      const { session_id } = born.session;
      return async (reader) => {
        const steps = await reader.listSteps({ session_id, limit: 10, offset: 0 });
        assert.deepEqual(steps, [one.step, two.step, three.step, four.step]);
        assert.deepEqual(await reader.getSession(session_id), four.owned.session);
      };
    });

    claim("replaces rows of tables that change by their key", async (store) => {
      const world = aWorld();
      await mustCommit(store, batchOf(world));
      const changed = {
        ...world,
        action: settled(world.action, { outcome: "failed", error: "no such moniker", attempts: 3 }),
        conversation: { ...world.conversation, title: null, status: "archived" as const, tags: ["b", "a"] },
        participant: { ...world.participant, left_at: aTime() },
        cursor: aCursor({ ...world.cursor, message_id: newId() }),
        agent_config: anAgentConfig({ agent_id: world.agent_config.agent_id, moniker: "echo" }),
      };
      await mustCommit(store, {
        actions: [changed.action],
        conversations: [{ kind: "update", conversation: changed.conversation }],
        participants: [changed.participant],
        cursors: [changed.cursor],
        agent_configs: [changed.agent_config],
      });
      const { session_id } = world.action;
      return async (reader) => {
        assert.deepEqual(await readWorld(reader, changed), changed);
        assert.deepEqual(await reader.listParticipants(world.conversation.conversation_id), [changed.participant]);
        assert.deepEqual(await reader.listActions({ session_id, limit: 10, offset: 0 }), [changed.action]);
      };
    });

    claim("with a step of a session that it does not write is refused whole", async (store) => {
      const owned = await mustCreate(store);
      const message = aMessage();
      const outcome = await store.commit({ steps: [aStep(owned.session)], messages: [message] }).catch(() => "refused");
      assert.notDeepEqual(outcome, { kind: "committed" });
      return async (reader) => {
        assert.equal(await reader.latestStep({ session_id: owned.session.session_id }), null);
        assert.equal(await reader.getMessage(message.message_id), null);
      };
    });
  });

  describe("closing", IN_ORDER, () => {
    const fresh = testOnFreshStore(open);
    fresh("waits for commits under way, and a second close is harmless", async ({ store, reopen }) => {
      const actions = Array.from({ length: 50 }, () => anAction());
      const outcomes = Promise.all(actions.map((action) => store.commit({ actions: [action] })));
      await Promise.all([store.close(), store.close()]);
      assert.ok((await outcomes).every(({ kind }) => kind === "committed"));
      await store.close();
      await assert.rejects(store.commit({ actions: [anAction()] }), { name: "EverstepError", code: "store_closed" });
      await assert.rejects(store.getSession("session-1"), { name: "EverstepError", code: "store_closed" });
      const reopened = await reopen();
      assert.equal((await reopened.listActions({ limit: 500, offset: 0 })).length, 50);
    });
  });
}

function claimRefusal(
  claim: ClaimTest,
  what: string,
  conflict: (typeof CONFLICTS)[string],
  place: "first" | "last",
): void {
  claim(`with ${what} is refused, and nothing of it is written (${place} in the batch)`, async (store) => {
    const first = await mustAdvance(store, await mustCreate(store));
    const second = await mustAdvance(store, first.owned);
    const { batch, outcome } = await conflict(store, second.owned);
    const world = aWorld();
    const bystander = await mustCreate(store);
    const others = joined(batchOf(world), advance(bystander).batch);
    const whole = place === "first" ? joined(batch, others) : joined(others, batch);
    assert.deepEqual(await store.commit(whole), outcome);
    const { session } = second.owned;
    return async (reader) => {
      assert.deepEqual(await readWorld(reader, world), NOTHING);
      assert.deepEqual(await reader.getSession(bystander.session.session_id), bystander.session);
      assert.equal(await reader.latestStep({ session_id: bystander.session.session_id }), null);
      assert.deepEqual(await reader.getSession(session.session_id), session);
      const steps = await reader.listSteps({ session_id: session.session_id, limit: 10, offset: 0 });
      assert.deepEqual(steps, [first.step, second.step]);
    };
  });
}
