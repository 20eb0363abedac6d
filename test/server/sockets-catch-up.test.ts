import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Message } from "../../src/domain/conversation.ts";
import type { Step } from "../../src/domain/step.ts";
import { randomFor } from "../store/random.ts";
import { pathOf, read, SHAPES } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { type ReceivedEvent, Watcher } from "./watcher.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();
const upTo = (last: number, from = 0) => Array.from({ length: last - from + 1 }, (_, index) => from + index);
const iterations = (watcher: Watcher) => watcher.of<Step>("agent_step").map(({ iteration }) => iteration);
const texts = (watcher: Watcher) => watcher.of<Message>("conversation_message").map(({ text }) => Number(text));

describe("catching up", () => {
  test("starts after the iteration that was named, and goes on live, each step once", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("count", { params: { to: 40, delay_ms: 5 } });
    await world().iteration(session_id, 10);
    using all = await Watcher.connect(world().server.url);
    using some = await Watcher.connect(world().server.url);
    using live = await Watcher.connect(world().server.url);
    await Promise.all([
      all.follow({ session_id, after_iteration: -1 }),
      some.follow({ session_id, after_iteration: 4 }),
      live.follow({ session_id }),
    ]);
    const { status } = await world().status(session_id, "done");
    assert.equal(status, "done");
    for (const watcher of [all, some, live])
      await watcher.until("the last step", () => iterations(watcher).includes(40));
    assert.deepEqual(iterations(all), upTo(40));
    assert.deepEqual(iterations(some), upTo(40, 5));
    assert.deepEqual(iterations(live), upTo(40, iterations(live)[0] ?? 41));
  });

  test("of a session that ended gives all of it, again and again", TIMEOUT, async () => {
    const { api } = world();
    const { session_id } = await api.create("count", { params: { to: 449 } });
    await world().status(session_id, "done");
    using watcher = await Watcher.connect(world().server.url);
    for (let round = 1; round <= 2; round += 1) {
      await watcher.follow({ session_id, after_iteration: -1 });
      await watcher.until("all steps", () => iterations(watcher).length >= 450 * round);
    }
    assert.deepEqual(iterations(watcher), [...upTo(449), ...upTo(449)]);
    await watcher.follow({ session_id, after_iteration: 449 });
    const later = await api.create("count", { params: { to: 0 } });
    await watcher.follow({ session_id: later.session_id, after_iteration: -1 });
    await watcher.until(
      "what was asked for later",
      () => watcher.of<Step>("agent_step").at(-1)?.session_id === later.session_id,
    );
    assert.equal(iterations(watcher).length, 901);
  });

  test("of a fork begins with its parent's steps", TIMEOUT, async () => {
    const { api } = world();
    const parent = await api.create("count", { params: { to: 5 } });
    await world().status(parent.session_id, "done");
    const fork = read(
      await api.post(pathOf("sessions", parent.session_id, "fork"), { iteration: 2 }),
      202,
      SHAPES.accepted,
    );
    using watcher = await Watcher.connect(world().server.url);
    await watcher.follow({ session_id: fork.session_id, after_iteration: -1 });
    await watcher.until("the last step", () => iterations(watcher).includes(5));
    assert.deepEqual(watcher.of("agent_step"), await api.steps(fork.session_id));
  });

  test("of a conversation starts after the message that was named", TIMEOUT, async () => {
    const { api } = world();
    const conversation_id = await api.conversation();
    const say = (n: number) =>
      api.post(pathOf("conversations", conversation_id, "messages"), {
        user_id: "ann",
        text: String(n),
        message_id: `${conversation_id} ${n}`,
      });
    for (const n of upTo(9)) await say(n);
    using all = await Watcher.connect(world().server.url);
    using some = await Watcher.connect(world().server.url);
    await Promise.all([
      all.follow({ conversation_id, after: "" }),
      some.follow({ conversation_id, after: `${conversation_id} 6` }),
    ]);
    for (const n of upTo(14, 10)) await say(n);
    for (const watcher of [all, some]) await watcher.until("the last message", () => texts(watcher).includes(14));
    assert.deepEqual([texts(all), texts(some)], [upTo(14), upTo(14, 7)]);
  });
});

/** Follows until `isEnough`, disconnecting after every few rows and reconnecting with a cursor. */
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
    const arrived = (events: ReceivedEvent[]) =>
      events.filter((one) => one.event === event).map(({ payload }) => payload);
    await watcher.follow(topicAfter(rows));
    await watcher.until(`${event}, ${rows.length} so far`, (events) => {
      const fresh = arrived(events);
      return fresh.length >= dropAfter || isEnough([...rows, ...fresh]);
    });
    // The connection breaks without a close packet; what arrived before was read.
    watcher.socket.io.engine.close();
    rows.push(...arrived(watcher.events));
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
      assert.deepEqual(
        (rows as Step[]).map(({ iteration }) => iteration),
        upTo(800),
      );
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
    await Promise.all(
      sessions.map((session_id) => api.create("count", { session_id, params: { to: 24, delay_ms: 10 } })),
    );
    const late = await Promise.all(upTo(99).map(join));
    for (const { watcher, session_id } of [...early, ...late]) {
      await watcher.until("the last step", () =>
        watcher.of<Step>("agent_step").some(({ iteration }) => iteration === 24),
      );
      const steps = watcher.of<Step>("agent_step");
      assert.deepEqual(
        steps.map(({ iteration }) => iteration),
        upTo(24),
      );
      assert.ok(steps.every((step) => step.session_id === session_id));
    }
  });
});
