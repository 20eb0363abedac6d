import assert from "node:assert/strict";
import { newId } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { Page, StoreCounts } from "../../../src/store/store.ts";
import {
  aConversation,
  aCursor,
  aMessage,
  anAction,
  anAgentConfig,
  aParticipant,
  aSession,
  aTime,
  mustAdvance,
  mustCommit,
  mustCreate,
  settled,
} from "../fixtures.ts";
import { describeClaims, type OpenStore } from "./opened-store.ts";
import { assertJoined, assertPages } from "./pages.ts";
import { countsOf } from "./session-counts.ts";

const newestFirst = <Row extends { created_at: string }>(rows: Row[]): Row[] =>
  rows.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1));
const STATUSES = ["running", "waiting", "paused", "stopping", "stopped", "done", "error"] as const;

export function reads(open: OpenStore): void {
  describeClaims("what sessions cost", open, (claim) => {
    claim(
      "what sessions used is summed up by day, agent and model, for those that began since a time",
      async (store) => {
        const sessions = [
          { agent_id: "ä\u0001", created_at: "2026-01-01T23:59:59.999Z", tokens_used: 5, cost_usd: 0.5 },
          { agent_id: "ä\u0001", created_at: "2026-01-02T00:00:00.000Z", tokens_used: 10, cost_usd: 0.25 },
          { agent_id: "ä\u0001", created_at: "2026-01-02T23:00:00.000Z", tokens_used: 20, cost_usd: 0.5 },
          { agent_id: "b", created_at: "2026-01-02T01:00:00.000Z", tokens_used: 0, cost_usd: 0 },
          {
            agent_id: "b",
            created_at: "2026-01-03T01:00:00.000Z",
            tokens_used: 7,
            cost_usd: 0,
            options: { model: "a/b" },
          },
        ];
        for (const session of sessions) await mustCreate(store, aSession(session));
        return async (reader) => {
          const rows = await reader.sumCosts("2026-01-02T00:00:00.000Z");
          const ä = {
            day: "2026-01-02",
            agent_id: "ä\u0001",
            model: null,
            sessions: 2,
            tokens_used: 30,
            cost_usd: 0.75,
          };
          const b = { day: "2026-01-03", agent_id: "b", model: "a/b", sessions: 1, tokens_used: 7, cost_usd: 0 };
          assert.deepEqual(
            rows.toSorted((one, other) => (one.day < other.day ? -1 : 1)),
            [ä, b],
          );
        };
      },
    );
  });

  describeClaims("a list of everything", open, (claim) => {
    claim(
      "sessions are filtered by status and agent, newest first, agents come by id, all are counted",
      async (store) => {
        const sessions: Session[] = [];
        for (let at = 0; at < 30; at++) {
          const status = STATUSES[at % STATUSES.length] as Session["status"];
          const agent_id = `agent-${at % 4}`;
          const session = aSession({ agent_id, status, moniker: `moniker-${at % 3}`, context: { at } });
          sessions.push(session);
        }
        // Their times go backwards, as on a clock that is set back: the newest is the one written last.
        for (const session of sessions.toReversed()) await mustCreate(store, session);
        const counts = Object.fromEntries(
          STATUSES.map((status) => [status, sessions.filter((session) => session.status === status).length]),
        ) as StoreCounts["sessions"];

        return async (reader) => {
          for (const status of [undefined, ...STATUSES]) {
            for (const agent_id of [undefined, "agent-0", "agent-3", "agent", "agent-9"]) {
              const filter = { ...(status && { status }), ...(agent_id && { agent_id }) };
              const expected = sessions.filter(
                (session) =>
                  session.status === (status ?? session.status) && session.agent_id === (agent_id ?? session.agent_id),
              );
              const list = (page: Page) => reader.listSessions({ ...page, ...filter });
              await assertPages(list, expected, JSON.stringify(filter));
            }
          }
          assert.deepEqual((await reader.counts()).sessions, counts);

          const agents = [0, 1, 2, 3].map((at) => {
            const own = sessions.filter(({ agent_id }) => agent_id === `agent-${at}`);
            const latest = own[0] as Session;
            return {
              agent_id: latest.agent_id,
              moniker: latest.moniker,
              session_count: own.length,
              counts: countsOf(own),
              latest,
            };
          });
          await assertPages((page) => reader.listAgents(page), agents, "agents");
          for (const agent of agents) assert.deepEqual(await reader.getAgent(agent.agent_id), agent);
          assert.equal(await reader.getAgent("agent"), null);
          assert.equal(await reader.getSession("agent-1"), null);
        };
      },
    );

    claim("actions are filtered by session, agent and whether they are processed, newest first", async (store) => {
      const actions = Array.from({ length: 24 }, (_, at) => {
        const action = anAction({ session_id: `session-${at % 3}`, agent_id: at % 4 === 0 ? null : `agent-${at % 2}` });
        if (at % 5 === 0) return settled(action, { receipt: "consumed", consumed_iteration: at });
        if (at % 5 === 1) return settled(action, { action_type: "agent_pause", outcome: "rejected", error: "why" });
        // Processed but not final: the guidance waits for its step.
        return at % 5 === 2 ? settled(action, { receipt: "delivered" }) : action;
      });
      await mustCommit(store, { actions: actions.slice(0, 12) });
      for (const action of actions.slice(12)) await mustCommit(store, { actions: [action] });
      return async (reader) => {
        for (const session_id of [undefined, "session-1", "session"]) {
          for (const agent_id of [undefined, "agent-1"]) {
            for (const processed of [undefined, true, false]) {
              const filter = {
                ...(session_id && { session_id }),
                ...(agent_id && { agent_id }),
                ...(processed !== undefined && { processed }),
              };
              const expected = newestFirst(actions).filter((action) =>
                Object.entries(filter).every(([column, value]) => action[column as keyof typeof action] === value),
              );
              await assertPages((page) => reader.listActions({ ...page, ...filter }), expected, JSON.stringify(filter));
            }
          }
        }
        for (const action of actions) assert.deepEqual(await reader.getAction(action.action_id), action);
        assert.equal(await reader.getAction(newId()), null);
      };
    });

    claim("conversations are filtered by status and tag, newest first", async (store) => {
      const conversations = Array.from({ length: 20 }, (_, at) =>
        aConversation({
          title: `conversation ${at}`,
          status: at % 3 === 0 ? "archived" : "open",
          tags: [...(at % 2 === 0 ? ["even"] : []), ...(at % 5 === 0 ? ["fifth", "even more"] : [])],
        }),
      );
      for (const conversation of conversations.toReversed())
        await mustCommit(store, { conversations: [{ kind: "create", conversation }] });
      return async (reader) => {
        for (const status of [undefined, "open", "archived"] as const) {
          for (const tag of [undefined, "even", "fifth", "even more", "eve", "%"]) {
            const expected = conversations.filter(
              (row) => row.status === (status ?? row.status) && (tag === undefined || row.tags.includes(tag)),
            );
            const filter = { ...(status && { status }), ...(tag && { tag }) };
            const list = (page: Page) => reader.listConversations({ ...page, ...filter });
            await assertPages(list, expected, JSON.stringify(filter));
          }
        }
        assert.equal(await reader.getConversation("conversation 1"), null);
      };
    });
  });

  describeClaims("a list", open, (claim) => {
    claim("actions keep their place in the list when they are settled", async (store) => {
      const session_id = newId();
      const actions = Array.from({ length: 6 }, () => anAction({ session_id }));
      await mustCommit(store, { actions });
      const settledOnes = [4, 1].map((at) => settled(actions[at] ?? anAction(), { outcome: "failed", error: "no" }));
      for (const action of settledOnes) await mustCommit(store, { actions: [action] });
      const now = actions.map(
        (action) => settledOnes.find(({ action_id }) => action_id === action.action_id) ?? action,
      );
      return (reader) => assertPages((page) => reader.listActions({ ...page, session_id }), now.toReversed());
    });

    claim("participants come in the order they joined, those who left included", async (store) => {
      const conversation_id = newId();
      const [person, session, late] = [
        aParticipant({ conversation_id, role: "owner" }),
        aParticipant({ conversation_id, user_id: null, agent_id: "agent-1", session_id: "session-1" }),
        aParticipant({ conversation_id, user_id: "user-2" }),
      ];
      for (const participant of [person, session, late, aParticipant({ conversation_id: newId() })])
        await mustCommit(store, { participants: [participant] });
      const gone = { ...person, left_at: aTime() };
      await mustCommit(store, { participants: [gone] });
      return async (reader) => {
        assert.deepEqual(await reader.listParticipants(conversation_id), [gone, session, late]);
        assert.deepEqual(await reader.getParticipant(session.participant_id), session);
        assert.deepEqual(await reader.listParticipants("conversation"), []);
      };
    });

    claim("messages come oldest first, since a time and after a message", async (store) => {
      const conversation_id = newId();
      const times = Array.from({ length: 10 }, aTime);
      // Three messages share each time.
      const messages = Array.from({ length: 30 }, (_, at) =>
        aMessage({ conversation_id, text: `message ${at}`, created_at: times[Math.floor(at / 3)] as string }),
      );
      await mustCommit(store, { messages: messages.slice(0, 10) });
      const stranger = aMessage({ conversation_id: newId() });
      for (const message of [stranger, ...messages.slice(10)]) await mustCommit(store, { messages: [message] });
      return async (reader) => {
        for (const since of [undefined, times[4], times[9], aTime()]) {
          for (const at of [undefined, 13, 29]) {
            const after = at === undefined ? undefined : messages[at]?.message_id;
            const filter = { conversation_id, ...(since && { since }), ...(after && { after }) };
            const expected = messages.filter((row, index) => row.created_at >= (since ?? "") && index > (at ?? -1));
            await assertPages((page) => reader.listMessages({ ...page, ...filter }), expected, JSON.stringify(filter));
          }
        }
        for (const after of ["nobody", stranger.message_id])
          assert.deepEqual(await reader.listMessages({ conversation_id, after, limit: 10, offset: 0 }), [], "unknown");
        assert.deepEqual(await reader.listMessages({ conversation_id: "nowhere", limit: 10, offset: 0 }), []);
        assert.equal(await reader.getMessage("nobody"), null);
      };
    });

    claim("cursors belong to a session and a conversation together", async (store) => {
      const pairs = ["a", "b"].flatMap((session_id) =>
        ["x", "y"].map((conversation_id) => ({ session_id, conversation_id })),
      );
      const cursors = pairs.map((pair) => aCursor(pair));
      await mustCommit(store, { cursors, agent_configs: [anAgentConfig({ agent_id: "configured" })] });
      return async (reader) => {
        for (const [at, pair] of pairs.entries()) assert.deepEqual(await reader.getCursor(pair), cursors[at]);
        assert.equal(await reader.getCursor({ session_id: "x", conversation_id: "a" }), null);
        assert.equal((await reader.getAgentConfig("configured"))?.agent_id, "configured");
        assert.equal(await reader.getAgentConfig("not configured"), null);
        assert.equal(await reader.getAgent("configured"), null);
      };
    });

    claim("pages of rows with one and the same time join without a gap or a repeat", async (store) => {
      const [created_at, agent_id, tag] = [aTime(), newId(), newId()];
      for (let at = 0; at < 25; at++) {
        await mustCreate(store, aSession({ agent_id, created_at }));
        const conversation = aConversation({ created_at, tags: [tag] });
        const action = anAction({ agent_id, created_at });
        await mustCommit(store, { conversations: [{ kind: "create", conversation }], actions: [action] });
      }
      return async (reader) => {
        const lists: Record<string, (page: Page) => Promise<unknown[]>> = {
          sessions: (page) => reader.listSessions({ ...page, agent_id }),
          conversations: (page) => reader.listConversations({ ...page, tag }),
          actions: (page) => reader.listActions({ ...page, agent_id }),
        };
        for (const [what, list] of Object.entries(lists)) {
          const whole = await list({ limit: 500, offset: 0 });
          assert.equal(whole.length, 25);
          for (const size of [1, 7]) await assertJoined(list, whole, size, what);
        }
      };
    });

    claim("the latest step of an agent is that of its session that moved last", async (store) => {
      const agent_id = newId();
      assert.equal(await store.latestStep({ agent_id }), null);
      const [one, two] = [
        await mustCreate(store, aSession({ agent_id })),
        await mustCreate(store, aSession({ agent_id })),
      ];
      assert.equal(await store.latestStep({ agent_id }), null);
      const first = await mustAdvance(store, one);
      assert.deepEqual(await store.latestStep({ agent_id }), first.step);
      const second = await mustAdvance(store, two);
      assert.deepEqual(await store.latestStep({ agent_id }), second.step);
      const third = await mustAdvance(store, first.owned);
      return async (reader) => {
        assert.deepEqual(await reader.latestStep({ agent_id }), third.step);
        assert.deepEqual(await reader.latestStep({ session_id: second.step.session_id }), second.step);
        assert.equal(await reader.latestStep({ session_id: "nowhere" }), null);
      };
    });
  });
}
