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

/** The bot's own part without a homeserver: events go in at times the test chooses, texts and jobs come out. */
class Desk implements AsyncDisposable {
  readonly state: BotState;
  status: AgentStatus = "ready";
  readonly #scratch: ScratchFolder;
  readonly #database: Database;
  readonly #worker: InboxWorker;
  #events = 0;

  private constructor(scratch: ScratchFolder, unknown_commands: "answer" | "agent") {
    this.#scratch = scratch;
    this.#database = Database.open(scratch.path);
    this.state = new BotState(this.#database, "DEVICE", "en");
    this.#worker = new InboxWorker({
      state: this.state,
      dispatcher: registeredHandlers({ unknown_commands }),
      bot: { user_id: "@bot:x", display_name: null },
      isAllowed: () => true,
      chatOf: () => null,
      context: { agent_status: () => this.status, isOperator: (user_id) => user_id === "@olga:x" },
      log: pino({ level: "silent" }),
    });
  }

  static async open(unknown_commands: "answer" | "agent" = "answer"): Promise<Desk> {
    return new Desk(await scratchFolder(), unknown_commands);
  }

  /** The immediate replies. */
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

  /** Jobs that have not started. */
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
    desk.state.transaction(() => desk.state.saves.record("@olga:x", "tea", "2026-01-01T00:00:00.000Z"));
    const [said = ""] = desk.hears("!save tea", olga);
    assert.match(said, /whether to reset, no longer applies/);
    desk.hears("!yes", olga);
    assert.deepEqual(desk.tasks, [{ kind: "save", name: "tea", then_reset: true }]);
    desk.hears("!destroy s-2", olga);
    assert.match(desk.hears("!reset", olga)[0] ?? "", /whether to end `s-2`, no longer applies/);
    desk.hears("!yes", olga);
    assert.deepEqual(desk.tasks.at(-1), { kind: "reset" });
    assert.match(desk.hears("!yes", olga)[0] ?? "", /Nothing is waiting/);
  });

  test("about ending a session is answered by a !yes that arrives before it is asked", async () => {
    await using desk = await Desk.open();
    const olga = { sender: "@olga:x" };
    desk.hears("!reset", olga);
    assert.deepEqual(desk.hears("!destroy s-1", olga), [], "the session is looked for first");
    assert.deepEqual(desk.hears("!yes", olga), []);
    assert.deepEqual(desk.tasks, [
      { kind: "ask_destroy", session: "s-1", sent_at: 0 },
      { kind: "control", verb: "destroy", session: "s-1" },
    ]);
  });

  test("says what is cancelled by !no, !cancel and 0", async () => {
    await using desk = await Desk.open();
    desk.state.transaction(() => desk.state.saves.record("@olga:x", "tea", "2026-01-01T00:00:00.000Z"));
    for (const [command, answer, said] of [
      ["!reset", "!no", "Cancelled: nothing was reset."],
      ["!save tea", "!cancel", "Cancelled: `tea` was not overwritten."],
      ["!load", "0", "Cancelled: nothing was loaded."],
      ["!load", "!cancel", "Cancelled: nothing was loaded."],
      ["!destroy s-1", "!no", "Cancelled: `s-1` goes on."],
    ] as const) {
      desk.hears(command, { sender: "@olga:x" });
      assert.deepEqual(desk.hears(answer, { sender: "@olga:x" }), [said]);
      assert.match(desk.hears("!yes", { sender: "@olga:x" })[0] ?? "", /Nothing is waiting/);
    }
  });

  test("says what it asks if the answer was meant for the list that it closed, or the other way round", async () => {
    await using desk = await Desk.open();
    desk.state.transaction(() => desk.state.saves.record("@anna:x", "tea", "2026-01-01T00:00:00.000Z"));
    desk.hears("!load");
    desk.hears("!reset");
    assert.deepEqual(desk.hears("1"), ["My last question was whether to reset: answer `!yes` or `!no`."]);
    desk.hears("!load");
    assert.match(desk.hears("!yes")[0] ?? "", /^My last question was what to load: answer with a number/);
    assert.deepEqual(desk.tasks, []);
    desk.hears("1");
    assert.deepEqual(desk.tasks, [{ kind: "load", name: "tea", adds: false }]);
  });

  test("that has expired supersedes nothing", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset", { minute: 0 });
    assert.doesNotMatch(desk.hears("!reset", { minute: 11 })[0] ?? "", /no longer applies/);
  });

  test("for a number takes no yes, and keeps the numbers it was asked with", async () => {
    await using desk = await Desk.open();
    for (const [at, name] of ["old", "new"].entries())
      desk.state.transaction(() => desk.state.saves.record("@anna:x", name, `2026-01-0${at + 1}T00:00:00.000Z`));
    assert.match(desk.hears("!load")[0] ?? "", /1\. `new`.*\n2\. `old`/);
    assert.match(desk.hears("!yes")[0] ?? "", /answer with a number/);
    desk.state.transaction(() => desk.state.saves.record("@anna:x", "newest", "2026-01-03T00:00:00.000Z"));
    desk.hears("1");
    assert.deepEqual(desk.tasks, [{ kind: "load", name: "new", adds: false }]);
    desk.hears("1");
    assert.deepEqual(desk.tasks.at(-1), { kind: "ask", text: "1" });
  });

  test("stays open while the person talks of something else", async () => {
    await using desk = await Desk.open();
    desk.hears("!reset");
    desk.hears("what would be lost?");
    desk.hears("!context");
    desk.hears("!yes");
    assert.deepEqual(desk.tasks, [
      { kind: "ask", text: "what would be lost?" },
      { kind: "context" },
      { kind: "reset" },
    ]);
  });
});

describe("an unknown command", () => {
  test("is answered with the nearest one that the person may use, and costs no question", async () => {
    await using desk = await Desk.open();
    for (const [command, nearest] of [
      ["!laod tea", "load"],
      ["!Contxt", "context"],
      ["!rset", "reset"],
      ["!settingss", "settings"],
    ] as const)
      assert.match(desk.hears(command)[0] ?? "", new RegExp(`Did you mean \`!${nearest}\``), command);
    assert.doesNotMatch(desk.hears("!destory x")[0] ?? "", /Did you mean/);
    assert.match(desk.hears("!destory x", { sender: "@olga:x" })[0] ?? "", /Did you mean `!destroy`/);
    assert.deepEqual(desk.hears("!weather"), ["There is no command `!weather`. `!help` lists all commands."]);
    assert.deepEqual(desk.tasks, []);
  });

  test("goes to the agent if so configured, unless the bot is addressed by name", async () => {
    await using desk = await Desk.open("agent");
    assert.deepEqual(desk.hears("!wow zz"), []);
    assert.deepEqual(desk.tasks, [{ kind: "ask", text: "!wow zz" }]);
    assert.match(desk.hears("@bot:x: !wow")[0] ?? "", /There is no command `!wow`/);
    assert.equal(desk.tasks.length, 1);
  });
});

test("!load +name loads beside what was loaded before, by name and from the list", async () => {
  await using desk = await Desk.open();
  desk.state.transaction(() => desk.state.saves.record("@anna:x", "tea", "2026-01-01T00:00:00.000Z"));
  desk.hears("!load +tea");
  desk.hears("!load +");
  desk.hears("1");
  const added = { kind: "load", name: "tea", adds: true };
  assert.deepEqual(desk.tasks, [added, added]);
});

describe("what the bot knows of the agent's chat", () => {
  test("lists what is loaded: a load replaces, an addition comes beside it", async () => {
    await using desk = await Desk.open();
    const chat = desk.state.chat(null);
    chat.belongTo("default-1");
    for (const [name, adds] of [
      ["a", true],
      ["b", true],
      ["a", true],
    ] as const)
      chat.loaded(name, adds);
    assert.deepEqual(chat.of("default-1").loaded, ["b", "a"]);
    chat.loaded("c", false);
    assert.deepEqual(chat.of("default-1").loaded, ["c"]);
  });

  test("is dropped for a chat that was reset elsewhere", async () => {
    await using desk = await Desk.open();
    const chat = desk.state.chat(null);
    chat.belongTo("default-1");
    chat.answered(5);
    chat.saved("tea");
    chat.loaded("tea", false);
    const nothing = { name: null, loaded: [], tokens_last: 0, tokens_total: 0 };
    assert.deepEqual(chat.of("default-2"), nothing);
    assert.equal(chat.of("default-1").name, "tea");
    assert.equal(chat.of(null).name, "tea", "an agent that names no session goes on");
    chat.belongTo("default-2");
    chat.answered(7);
    assert.deepEqual(chat.of("default-2"), { ...nothing, tokens_last: 7, tokens_total: 7 });
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

  test("remembers both while it asks about overwriting", async () => {
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
  test("takes in an event once, however often it arrives", async () => {
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
