import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { type Logger, pino } from "pino";
import { catalogue } from "../../src/surfaces/matrix/catalogue/catalogue.ts";
import { OverdueNotices } from "../../src/surfaces/matrix/encryption/overdue-notices.ts";
import { Dispatcher } from "../../src/surfaces/matrix/events/dispatcher.ts";
import { InboxWorker } from "../../src/surfaces/matrix/events/inbox-worker.ts";
import { contentOf } from "../../src/surfaces/matrix/outgoing/content.ts";
import { plainNotice } from "../../src/surfaces/matrix/outgoing/plain-notice.ts";
import { MockPlatform } from "../../src/surfaces/matrix/platform/mock-platform.ts";
import { BotState } from "../../src/surfaces/matrix/state/bot-state.ts";
import { Database } from "../../src/surfaces/matrix/state/database.ts";
import { MIGRATIONS } from "../../src/surfaces/matrix/state/migrations.ts";
import { SyncWriter } from "../../src/surfaces/matrix/sync-writer.ts";
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

/** An agent on which the bot fails through no fault of the agent. */
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

describe("a question on which the bot fails through its own fault", () => {
  test("is set aside after several tries, its room is told, and the next one is answered", TIMEOUT, async () => {
    await using scratch = await scratchFolder();
    const platform = new Trap();
    const { state, questionWorker, done, stop } = await workerOn(scratch.path, platform, "http://127.0.0.1:1");
    for (const text of ["trap", "next"]) state.jobs.add(asked(1, text), { kind: "ask", text });
    platform.connect();
    questionWorker.start();
    await done;
    assert.deepEqual(platform.asked, ["trap", "trap", "trap", "next"]);
    const [notice, answer] = bodies(state);
    assert.match(notice ?? "", /set it aside \(nobody expected this\)/);
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

  test("is set aside if the bot never survives it", TIMEOUT, async () => {
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
    chatOf: () => null,
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
    "in an encrypted room are not sent by a bot without encryption, except that it cannot read there",
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

  test("in many rooms hold up no other room, however many wait there", TIMEOUT, async () => {
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
    "while the homeserver responds with errors are given up, and their room gets what comes after",
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
  // The room was told that it cannot be read; it is encrypted all the same.
  assert.deepEqual([state.encrypted_rooms.has("!told:x"), state.encrypted_rooms.refuse("!told:x")], [true, false]);
  state.transaction(() => state.jobs.restarted());
  const [job] = state.jobs.open();
  assert.deepEqual([job?.task, job?.failures, job?.restarts, job?.error], [{ kind: "ask", text: "one" }, 0, 1, null]);
});

test("a state file with a session's question finds it by its message, and asks it no second time", async () => {
  await using scratch = await scratchFolder();
  const old = new DatabaseSync(join(scratch.path, "state.sqlite"));
  old.exec(`${MIGRATIONS.slice(0, 4).join(";")}; PRAGMA user_version = 4`);
  old.exec(`
    INSERT INTO session_questions VALUES ('!r:x', 's-1', 'q-1', 't1', '["yes","no"]');
    INSERT INTO session_questions VALUES ('!r:x', 's-2', 'q-2', 't2', 'null');
  `);
  old.close();
  using database = Database.open(scratch.path);
  const { session_questions } = new BotState(database, "DEVICE", "en");
  assert.ok(session_questions.isAsked({ room_id: "!r:x", session_id: "s-1", question_id: "q-1" }));
  assert.deepEqual(session_questions.find("t1")?.thumbs, ["yes", "no"]);
  assert.deepEqual([session_questions.find("t2")?.choices, session_questions.find("t2")?.thumbs], [null, null]);
});

test("a message in a sync is sent, even if the response to sending it was lost, and can be reacted to at once", async () => {
  await using scratch = await scratchFolder();
  using database = Database.open(scratch.path);
  const state = new BotState(database, "DEVICE", "en");
  const writer = new SyncWriter(state, "@bot:x", { refuses_encryption: false });
  const [lost, other] = [1, 2].map((number) => state.outbox.add(ROOM, plainNotice(`question ${number}`)));
  const own = (event_id: string, transaction_id: string | undefined, sender = "@bot:x") => ({
    event_id,
    room_id: ROOM,
    type: "m.room.encrypted",
    sender,
    origin_server_ts: 0,
    content: {},
    unsigned: { transaction_id },
  });
  const sync = { encrypted_room_ids: [], missed_room_ids: [], upgrades: [], has_news: false };
  let lastQuestion: string | undefined;
  writer.take({ ...sync, since: "s0", events: [] }, () => {});
  const events = [own("$1", lost), own("$2", other, "@eve:x"), own("$3", "another"), own("$4", undefined)];
  writer.take({ ...sync, since: "s1", events }, () => {
    lastQuestion = state.outbox.findByEvent("$1")?.transaction_id;
  });
  assert.equal(lastQuestion, lost, "it is known before the events after it are handled");
  assert.deepEqual(
    state.outbox.open().map(({ transaction_id }) => transaction_id),
    [other],
  );
  state.outbox.failed(lost ?? "", "too late");
  assert.equal(state.outbox.find(lost ?? "")?.outcome, "sent");
});

test("a missing key is reported once, after half a minute, without a sync; its events are kept for a week", async (context) => {
  await using scratch = await scratchFolder();
  using database = Database.open(scratch.path);
  const state = new BotState(database, "DEVICE", "en");
  const { undecrypted } = state;
  const event = (event_id: string, session_id: string, sender = "@anna:x") => ({
    event_id,
    room_id: ROOM,
    type: "m.room.encrypted",
    sender,
    origin_server_ts: 0,
    content: { session_id, "m.relates_to": { rel_type: "m.thread", event_id: "$thread" } },
  });
  const SECOND = 1000;
  const WEEK = 7 * 24 * 3600 * SECOND;
  context.mock.timers.enable({ apis: ["Date", "setTimeout"], now: 0 });
  let wakes = 0;
  using notices = new OverdueNotices({
    state,
    isAllowed: (user_id) => user_id !== "@stranger:x",
    onOutbox: () => {
      wakes += 1;
    },
    log,
  });
  const relations = () => state.outbox.open().map(({ content }) => content["m.relates_to"] ?? {});
  const answers = () => relations().map((relation) => (relation["m.in_reply_to"] as { event_id: string }).event_id);
  for (const [id, key] of [
    ["$1", "a"],
    ["$2", "a"],
    ["$3", "b"],
  ] as const)
    undecrypted.add(event(id, key));
  undecrypted.add(event("$0", "c", "@stranger:x"));
  notices.refresh();
  context.mock.timers.tick(30 * SECOND);
  assert.deepEqual(answers(), []);
  context.mock.timers.tick(SECOND);
  assert.deepEqual(answers().sort(), ["$1", "$3"], "once for each key");
  assert.ok(relations().every((relation) => relation["event_id"] === "$thread"));
  assert.equal(wakes, 1);
  undecrypted.add(event("$4", "a"));
  notices.refresh();
  context.mock.timers.tick(31 * SECOND);
  assert.equal(answers().length, 2, "the sender was told of that key");
  assert.equal(undecrypted.all().length, 5);
  context.mock.timers.tick(WEEK + SECOND);
  notices.refresh();
  assert.deepEqual(undecrypted.all(), []);
});
