import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Message } from "../../src/domain/conversation.ts";
import type { Step } from "../../src/domain/step.ts";
import { randomFor } from "../store/random.ts";
import { pathOf } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { type Told, Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, index) => index);

/** Follows until `isEnough`, hanging up after every few rows and coming back with a cursor. */
async function followWithDrops(options: {
  event: string;
  topicAfter: (rows: unknown[]) => Record<string, unknown>;
  rowsUntilDrop: () => number;
  isEnough: (rows: unknown[]) => boolean;
}): Promise<{ rows: unknown[]; connections: number }> {
  const { event, topicAfter, rowsUntilDrop, isEnough } = options;
  const rows: unknown[] = [];
  let connections = 0;
  while (!isEnough(rows)) {
    using watcher = await Watcher.connect(world().server.url);
    connections += 1;
    const dropAfter = rowsUntilDrop();
    const arrived = (told: Told[]) => told.filter((one) => one.event === event).map(({ payload }) => payload);
    await watcher.follow(topicAfter(rows));
    await watcher.until(`${event}, ${rows.length} so far`, (told) => {
      const fresh = arrived(told);
      return fresh.length >= dropAfter || isEnough([...rows, ...fresh]);
    });
    // The connection breaks without a word; what arrived until then was read.
    watcher.socket.io.engine.close();
    rows.push(...arrived(watcher.told));
  }
  return { rows, connections };
}

describe("a client that loses its connection again and again", () => {
  test("gets every step of a running session once, in order", TIMEOUT, async (context) => {
    const random = randomFor(context);
    const { session_id } = await world().api.create("count", { params: { to: 800 } });
    const clients = await Promise.all(
      upTo(4).map(() =>
        followWithDrops({
          event: "agent_step",
          topicAfter: (rows) => ({ session_id, after_iteration: (rows.at(-1) as Step | undefined)?.iteration ?? -1 }),
          rowsUntilDrop: () => 1 + random.below(100),
          isEnough: (rows) => (rows.at(-1) as Step | undefined)?.iteration === 800,
        }),
      ),
    );
    for (const { rows, connections } of clients) {
      assert.deepEqual((rows as Step[]).map(({ iteration }) => iteration), upTo(800));
      assert.ok(connections > 3, `${connections} connections`);
    }
    assert.deepEqual(clients[0]?.rows, await world().api.steps(session_id));
  });

  test("gets every message of a lively conversation once, in order", TIMEOUT, async (context) => {
    const random = randomFor(context);
    const { api } = world();
    const conversation_id = await api.conversation();
    const last = "the last word";
    const following = upTo(2).map(() =>
      followWithDrops({
        event: "conversation_message",
        topicAfter: (rows) => ({ conversation_id, after: (rows.at(-1) as Message | undefined)?.message_id ?? "" }),
        rowsUntilDrop: () => 1 + random.below(30),
        isEnough: (rows) => (rows.at(-1) as Message | undefined)?.text === last,
      }),
    );
    const path = pathOf("conversations", conversation_id, "messages");
    const talking = upTo(3).map(async (user) => {
      for (const n of upTo(49)) await api.post(path, { user_id: String(user), text: `${user} ${n}` });
    });
    await Promise.all(talking);
    await api.post(path, { user_id: "last", text: last });
    const messages = await api.messages(conversation_id);
    assert.equal(messages.length, 201);
    for (const { rows } of await Promise.all(following)) assert.deepEqual(rows, messages);
  });
});

describe("two hundred sockets on twenty sessions", () => {
  test("each get every step of their session and of no other", TIMEOUT, async () => {
    const { api, server } = world();
    const sessions = upTo(19).map((n) => `crowd ${n}`);
    await using crowd = new AsyncDisposableStack();
    const join = async (n: number) => {
      const watcher = crowd.use(await Watcher.connect(server.url));
      const session_id = sessions[n % sessions.length] ?? "";
      await watcher.follow({ session_id, after_iteration: -1 });
      return { watcher, session_id };
    };
    const early = await Promise.all(upTo(99).map(join));
    await Promise.all(sessions.map((session_id) => api.create("count", { session_id, params: { to: 24, delay_ms: 10 } })));
    const late = await Promise.all(upTo(99).map(join));
    for (const { watcher, session_id } of [...early, ...late]) {
      await watcher.until("the last step", () => watcher.of<Step>("agent_step").some(({ iteration }) => iteration === 24));
      const steps = watcher.of<Step>("agent_step");
      assert.deepEqual(steps.map(({ iteration }) => iteration), upTo(24));
      assert.ok(steps.every((step) => step.session_id === session_id));
    }
  });
});
