import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { type Logger, pino } from "pino";
import { catalogue } from "../../src/surfaces/matrix/catalogue/catalogue.ts";
import { Dispatcher } from "../../src/surfaces/matrix/events/dispatcher.ts";
import { InboxWorker } from "../../src/surfaces/matrix/events/inbox-worker.ts";
import { contentOf } from "../../src/surfaces/matrix/outgoing/content.ts";
import { plainNotice } from "../../src/surfaces/matrix/outgoing/plain-notice.ts";
import { MockPlatform } from "../../src/surfaces/matrix/platform/mock-platform.ts";
import { BotState } from "../../src/surfaces/matrix/state/bot-state.ts";
import { Database } from "../../src/surfaces/matrix/state/database.ts";
import { MIGRATIONS } from "../../src/surfaces/matrix/state/migrations.ts";
import { Homeserver } from "../../src/surfaces/matrix/transport/homeserver.ts";
import { Sender } from "../../src/surfaces/matrix/transport/sender.ts";
import { QuestionWorker } from "../../src/surfaces/matrix/work/question-worker.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { failingHomeserver } from "./failing-homeserver.ts";

const TIMEOUT = { timeout: 60_000 };
const log = pino({ level: "silent" });
const ROOM = "!r:x";
const asked = (position: number, text: string) => ({
  event_id: `$${position}`,
  room_id: ROOM,
  user_id: "@anna:x",
  text,
});

/** An agent that the bot fails at, for a reason that is no failure of the agent. */
class Trap extends MockPlatform {
  readonly asked: string[] = [];

  override async *ask(text: string): AsyncGenerator<string, void, undefined> {
    this.asked.push(text);
    if (text === "trap") throw new TypeError("nobody expected this");
    yield* super.ask(text);
  }
}

async function workerOn(folder: string, platform: Trap, url: string) {
  const database = Database.open(folder);
  const state = new BotState(database, "DEVICE", "en");
  const homeserver = new Homeserver(url);
  homeserver.authorize("token");
  const sender = new Sender({ homeserver, state, encryption: null, log, undeliverable: plainNotice("undeliverable") });
  const done = Promise.withResolvers<void>();
  const questionWorker = new QuestionWorker({ state, platform, homeserver, sender, user_id: "@bot:x", log }, () => {
    if (!state.jobs.open().some(({ task }) => task.kind === "ask")) done.resolve();
  });
  const stop = async (): Promise<void> => {
    await questionWorker.stop();
    await sender.stop();
    database[Symbol.dispose]();
  };
  return { state, questionWorker, sender, done: done.promise, stop };
}

const bodies = (state: BotState): string[] => state.outbox.open().map(({ content }) => content.body);

describe("a question that the bot fails at for a reason of its own", () => {
  test("is set aside after several tries, its room is told, and the next one is answered", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const platform = new Trap();
    const { state, questionWorker, done, stop } = await workerOn(scratch.path, platform, "http://127.0.0.1:1");
    for (const text of ["trap", "next"]) state.jobs.add(asked(1, text), { kind: "ask", text });
    platform.connect();
    questionWorker.start();
    await done;
    assert.deepEqual(platform.asked, ["trap", "trap", "trap", "next"]);
    const [told, answer] = bodies(state);
    assert.match(told ?? "", /set it aside \(nobody expected this\)/);
    assert.equal(answer, "You said: next");
    await stop();
    const sqlite = new DatabaseSync(join(scratch.path, "state.sqlite"));
    const errors = sqlite.prepare("SELECT error FROM jobs ORDER BY position").all() as { error: string | null }[];
    sqlite.close();
    assert.deepEqual(
      errors.map(({ error }) => error),
      ["nobody expected this", null],
    );
  });

  test("is counted across restarts", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    for (const [life, isLast] of [false, false, true].entries()) {
      const platform = new Trap();
      const { state, questionWorker, done, stop } = await workerOn(scratch.path, platform, "http://127.0.0.1:1");
      if (life === 0) for (const text of ["trap", "next"]) state.jobs.add(asked(1, text), { kind: "ask", text });
      const failed = Promise.withResolvers<void>();
      const { jobs } = state;
      const count = jobs.failed.bind(jobs);
      jobs.failed = (position) => {
        const failures = count(position);
        failed.resolve();
        return failures;
      };
      platform.connect();
      questionWorker.start();
      await (isLast ? done : failed.promise);
      if (isLast) assert.deepEqual(platform.asked, ["trap", "next"]);
      await stop();
    }
  });

  test("is set aside where the bot never outlives it", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const platform = new Trap();
    const { state, questionWorker, done, stop } = await workerOn(scratch.path, platform, "http://127.0.0.1:1");
    const position = state.jobs.add(asked(1, "fatal"), { kind: "ask", text: "fatal" });
    state.jobs.begin(position, null);
    for (let life = 0; life < 20; life++) state.jobs.restarted();
    state.jobs.add(asked(2, "next"), { kind: "ask", text: "next" });
    platform.connect();
    questionWorker.start();
    await done;
    assert.deepEqual(platform.asked, ["next"]);
    assert.match(bodies(state)[0] ?? "", /set it aside/);
    await stop();
  });
});

test("an event that cannot be handled is set aside, its room is told, and the next one is handled", async () => {
  await using scratch = await scratchFolder();
  using database = Database.open(scratch.path);
  const state = new BotState(database, "DEVICE", "en");
  const dispatcher = new Dispatcher();
  dispatcher.register("message", ({ text }) => {
    if (text === "trap") throw new TypeError("nobody expected this");
    return [{ kind: "message", text: `heard ${text}`, is_notice: true }];
  });
  const errors: string[] = [];
  const worker = new InboxWorker({
    state,
    dispatcher,
    bot: { user_id: "@bot:x", display_name: null },
    isAllowed: () => true,
    context: { agent_status: () => "ready", isOperator: () => false },
    log: { error: (_: object, text: string) => errors.push(text) } as unknown as Logger,
  });
  for (const [index, body] of ["trap", "next"].entries())
    state.inbox.add({
      event_id: `$${index}`,
      room_id: ROOM,
      sender: "@anna:x",
      type: "m.room.message",
      origin_server_ts: 0,
      content: { msgtype: "m.text", body },
    });
  worker.work();
  assert.match(bodies(state)[0] ?? "", /set it aside \(nobody expected this\)/);
  assert.equal(bodies(state)[1], "heard next");
  assert.deepEqual(errors, ["an event could not be handled and was set aside"]);
});

describe("messages that do not get through", () => {
  const senderTo = (folder: string, url: string, stuck: { most_tries: number; longest_wait_ms: number }) => {
    const database = Database.open(folder);
    const state = new BotState(database, "DEVICE", "en");
    const homeserver = new Homeserver(url);
    homeserver.authorize("token");
    return {
      database,
      state,
      sender: new Sender({
        homeserver,
        state,
        encryption: null,
        log,
        undeliverable: plainNotice("undeliverable"),
        stuck,
      }),
    };
  };

  test(
    "are not sent to be read by all where the room is encrypted and the bot is not, but that it cannot",
    TIMEOUT,
    async () => {
      await using scratch = await scratchFolder();
      await using homeserver = await failingHomeserver(() => false);
      const { database, state, sender } = senderTo(scratch.path, homeserver.url, { most_tries: 1, longest_wait_ms: 1 });
      const refusal = contentOf(catalogue("ru").encrypted, { is_notice: true });
      state.transaction(() => {
        state.encrypted_rooms.add("!secret:x");
        for (const content of [plainNotice("an answer"), refusal]) state.outbox.add("!secret:x", content);
        state.outbox.add("!plain:x", plainNotice("an answer"));
      });
      sender.start();
      await homeserver.until("!plain:x", 1);
      await homeserver.until("!secret:x", 1);
      await sender.stop();
      assert.deepEqual(homeserver.sent.get("!secret:x"), [refusal.body]);
      assert.ok(!bodies(state).includes("an answer"));
      database[Symbol.dispose]();
    },
  );

  test("in many rooms keep no other room waiting, however much waits there", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    await using homeserver = await failingHomeserver((room_id) => room_id.startsWith("!bad"));
    const { database, state, sender } = senderTo(scratch.path, homeserver.url, {
      most_tries: 1000,
      longest_wait_ms: 60_000,
    });
    state.transaction(() => {
      for (let number = 0; number < 20; number++)
        for (let row = 0; row < 50; row++) state.outbox.add(`!bad${number}:x`, plainNotice("stuck"));
      for (const text of ["one", "two", "three"]) state.outbox.add("!good:x", plainNotice(text));
    });
    sender.start();
    await homeserver.until("!good:x", 3);
    assert.deepEqual(homeserver.sent.get("!good:x"), ["one", "two", "three"]);
    await sender.stop();
    database[Symbol.dispose]();
  });

  test(
    "while the homeserver answers otherwise are given up, and their room hears what comes after",
    TIMEOUT,
    async () => {
      await using scratch = await scratchFolder();
      await using homeserver = await failingHomeserver((_, body) => body === "stuck");
      const { database, state, sender } = senderTo(scratch.path, homeserver.url, {
        most_tries: 3,
        longest_wait_ms: 20,
      });
      const transaction_id = state.transaction(() => {
        const stuck = state.outbox.add(ROOM, plainNotice("stuck"));
        state.outbox.add(ROOM, plainNotice("after"));
        return stuck;
      });
      sender.start();
      await homeserver.until(ROOM, 2);
      assert.deepEqual(homeserver.sent.get(ROOM), ["after", "undeliverable"]);
      const given_up = state.outbox.find(transaction_id);
      assert.equal(given_up?.outcome, "failed");
      assert.match(given_up.error ?? "", /502/);
      await sender.stop();
      database[Symbol.dispose]();
    },
  );

  test("because the homeserver is away are never given up", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const away = await failingHomeserver(() => false);
    await away[Symbol.asyncDispose]();
    const { database, state, sender } = senderTo(scratch.path, away.url, { most_tries: 1, longest_wait_ms: 1 });
    const transaction_id = state.transaction(() => state.outbox.add(ROOM, plainNotice("waits")));
    const tried = Promise.withResolvers<void>();
    const { outbox } = state;
    const heads = outbox.heads.bind(outbox);
    let looks = 0;
    outbox.heads = () => {
      looks += 1;
      if (looks === 6) tried.resolve();
      return heads();
    };
    sender.start();
    await tried.promise;
    assert.equal(state.outbox.find(transaction_id)?.outcome, null);
    assert.equal(state.outbox.find(transaction_id)?.attempts, 0);
    await sender.stop();
    database[Symbol.dispose]();
  });
});

test("a state file of the first version opens with everything in it", async () => {
  await using scratch = await scratchFolder();
  const old = new DatabaseSync(join(scratch.path, "state.sqlite"));
  old.exec(`${MIGRATIONS[0]}; PRAGMA user_version = 1`);
  old.exec(`
    INSERT INTO inbox (event_id, room_id, event) VALUES ('$1', '!r:x', '{"event_id":"$1"}');
    INSERT INTO outbox (transaction_id, device_id, room_id, content) VALUES ('t1', 'DEVICE', '!r:x', '{"body":"hello"}');
    INSERT INTO jobs (event_id, room_id, user_id, task, state)
      VALUES ('$1', '!r:x', '@anna:x', '{"kind":"ask","text":"one"}', 'begun');
    INSERT INTO encrypted_rooms (room_id) VALUES ('!told:x');
  `);
  old.close();
  using database = Database.open(scratch.path);
  const state = new BotState(database, "DEVICE", "en");
  assert.equal(state.inbox.next()?.event.event_id, "$1");
  assert.deepEqual(bodies(state), ["hello"]);
  // It was told that it cannot be read, and is encrypted all the same.
  assert.deepEqual([state.encrypted_rooms.has("!told:x"), state.encrypted_rooms.refuse("!told:x")], [true, false]);
  state.transaction(() => state.jobs.restarted());
  const [job] = state.jobs.open();
  assert.deepEqual([job?.task, job?.failures, job?.restarts, job?.error], [{ kind: "ask", text: "one" }, 0, 1, null]);
});
