import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pino } from "pino";
import { InboxWorker } from "../../src/surfaces/matrix/events/inbox-worker.ts";
import { registeredHandlers } from "../../src/surfaces/matrix/handlers/register.ts";
import type { AgentStatus } from "../../src/surfaces/matrix/platform/platform-client.ts";
import { BotState } from "../../src/surfaces/matrix/state/bot-state.ts";
import { Database } from "../../src/surfaces/matrix/state/database.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";

const MINUTE = 60_000;

/** The bot's own part without a homeserver: events in at times of the test's choosing, words and jobs out. */
class Desk implements AsyncDisposable {
  readonly state: BotState;
  status: AgentStatus = "ready";
  readonly #scratch: ScratchFolder;
  readonly #database: Database;
  readonly #worker: InboxWorker;
  #events = 0;

  private constructor(scratch: ScratchFolder) {
    this.#scratch = scratch;
    this.#database = Database.open(scratch.path);
    this.state = new BotState(this.#database, "DEVICE", "en");
    this.#worker = new InboxWorker({
      state: this.state,
      dispatcher: registeredHandlers(),
      bot: { user_id: "@bot:x", display_name: null },
      isAllowed: () => true,
      context: { agent_status: () => this.status, isOperator: (user_id) => user_id === "@olga:x" },
      log: pino({ level: "silent" }),
    });
  }

  static async open(): Promise<Desk> {
    return new Desk(await scratchFolder());
  }

  /** What is said at once. */
  hears(body: string, { minute = 0, sender = "@anna:x", room_id = "!r:x" } = {}): string[] {
    const before = new Set(this.state.outbox.open().map(({ transaction_id }) => transaction_id));
    this.state.inbox.add({
      event_id: `$${++this.#events}`,
      room_id,
      sender,
      type: "m.room.message",
      origin_server_ts: minute * MINUTE,
      content: { msgtype: "m.text", body },
    });
    this.#worker.work();
    const rows = this.state.outbox.open().filter(({ transaction_id }) => !before.has(transaction_id));
    return rows.map(({ content }) => content.body);
  }

  /** Work that was ordered and not begun. */
  get tasks(): object[] {
    return this.state.jobs.open().map(({ task }) => task);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#database[Symbol.dispose]();
    await this.#scratch[Symbol.asyncDispose]();
  }
}

describe("an open question", () => {
  test("can be answered for ten minutes of the homeserver's time, and not after", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset", { minute: 0 });
    assert.deepEqual(desk.hears("!yes", { minute: 10 }), []);
    assert.deepEqual(desk.tasks, [{ kind: "reset" }]);
    desk.hears("!reset", { minute: 20 });
    assert.deepEqual(desk.hears("!yes", { minute: 30.01 }), ["Nothing is waiting for an answer."]);
    assert.equal(desk.tasks.length, 1);
  });

  test("belongs to one person in one room", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset");
    assert.match(desk.hears("!yes", { sender: "@boris:x" })[0] ?? "", /Nothing is waiting/);
    assert.match(desk.hears("!yes", { room_id: "!other:x" })[0] ?? "", /Nothing is waiting/);
    desk.hears("!yes");
    assert.deepEqual(desk.tasks, [{ kind: "reset" }]);
  });

  test("is superseded by the next one, which says so and is the only one that !yes means", async () => {
    await using desk = await Desk.open();
    const olga = { sender: "@olga:x" };
    desk.hears("!reset", olga);
    const [said = ""] = desk.hears("!destroy s-1", olga);
    assert.match(said, /whether to reset, is off the table/);
    desk.hears("!yes", olga);
    assert.deepEqual(desk.tasks, [{ kind: "control", verb: "destroy", session: "s-1" }]);
    desk.hears("!destroy s-2", olga);
    assert.match(desk.hears("!reset", olga)[0] ?? "", /whether to end `s-2`, is off the table/);
    desk.hears("!yes", olga);
    assert.deepEqual(desk.tasks.at(-1), { kind: "reset" });
    assert.match(desk.hears("!yes", olga)[0] ?? "", /Nothing is waiting/);
  });

  test("that has run out supersedes nothing", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset", { minute: 0 });
    assert.doesNotMatch(desk.hears("!reset", { minute: 11 })[0] ?? "", /off the table/);
  });

  test("for a number takes no yes, and keeps the numbers it was asked with", async () => {
    await using desk = await Desk.open();
    for (const [at, name] of ["old", "new"].entries())
      desk.state.transaction(() => desk.state.saves.record("@anna:x", name, `2026-01-0${at + 1}T00:00:00.000Z`));
    assert.match(desk.hears("!load")[0] ?? "", /1\\\. `new`.*\n2\\\. `old`/);
    assert.match(desk.hears("!yes")[0] ?? "", /Nothing is waiting/);
    desk.state.transaction(() => desk.state.saves.record("@anna:x", "newest", "2026-01-03T00:00:00.000Z"));
    desk.hears("1");
    assert.deepEqual(desk.tasks, [{ kind: "load", name: "new" }]);
    desk.hears("1");
    assert.deepEqual(desk.tasks.at(-1), { kind: "ask", text: "1" });
  });

  test("stays open while the person talks of something else", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset");
    desk.hears("what would be lost?");
    desk.hears("!context");
    desk.hears("!yes");
    assert.deepEqual(desk.tasks, [{ kind: "ask", text: "what would be lost?" }, { kind: "reset" }]);
  });
});

describe("a reset with a save before it", () => {
  test("is one order: the save knows that the reset follows", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset");
    desk.hears("!save tea");
    assert.deepEqual(desk.tasks, [{ kind: "save", name: "tea", then_reset: true }]);
    assert.match(desk.hears("!yes")[0] ?? "", /Nothing is waiting/);
  });

  test("keeps both in mind while it asks about overwriting", async () => {
    await using desk = await Desk.open();
    desk.state.transaction(() => desk.state.saves.record("@anna:x", "tea", "2026-01-01T00:00:00.000Z"));
    desk.hears("!reset");
    desk.hears("!save tea");
    desk.hears("!yes");
    assert.deepEqual(desk.tasks, [{ kind: "save", name: "tea", then_reset: true }]);
  });

  test("with a name that cannot be used stays open", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset");
    assert.match(desk.hears("!save ../x")[0] ?? "", /cannot be used/);
    desk.hears("!yes");
    assert.deepEqual(desk.tasks, [{ kind: "reset" }]);
  });
});

describe("the bot's state", () => {
  test("takes an event in once, however often it is told", async () => {
    await using desk = await Desk.open();
    desk.hears("one");
    const event = desk.state.inbox.find("$1") ?? assert.fail();
    assert.equal(desk.state.inbox.add(event), false);
    assert.equal(desk.state.inbox.next(), null);
  });

  test("is left alone by a second owner and by a newer version's", async () => {
    await using scratch = await scratchFolder();
    const first = Database.open(scratch.path);
    first.run("PRAGMA user_version = 99");
    first[Symbol.dispose]();
    assert.throws(() => Database.open(scratch.path), { code: "store_newer" });
  });
});
