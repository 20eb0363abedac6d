import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { skipWithoutHomeserver } from "../homeserver.ts";
import { wholeScene } from "../whole-scene.ts";

export function commandsSuite(): void {
  describe("the other commands", { skip: skipWithoutHomeserver, concurrency: 3 }, () => {
    const whole = wholeScene({ MATRIX_OPERATORS: "@olga-*:*" });
    const settle = async (name: string) => {
      const { scene, bot } = whole();
      const person = await scene.person(name);
      return { person, room: await person.openRoom([bot.user_id]) };
    };
    const api = async (path: string, body?: unknown): Promise<Record<string, unknown>> => {
      const options = body && {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      };
      const response = await fetch(`${whole().server.url}${path}`, options || {});
      assert.ok(response.ok, `${path}: ${response.status}`);
      return (await response.json()) as Record<string, unknown>;
    };

    test("a room that the bot was invited to is greeted once", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      await person.ask(room, "!context", /Context:/);
      assert.equal(person.heard(room).filter(({ text }) => text.startsWith("Hello.")).length, 1);
    });

    test("!help lists the commands, tells more about one, and shows operators theirs", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      const { text, is_notice } = await person.ask(room, "!help", /!save/);
      assert.ok(is_notice);
      assert.ok(!text.includes("!destroy"));
      await person.ask(room, "!help save", /^`!save \[name\]`: Has the agent save/);
      await person.ask(room, "!HELP !load", /^`!load/);
      await person.ask(room, "!help nonsense", /There is no command `!nonsense`/);
      const { person: olga, room: other } = await settle("olga");
      await olga.ask(other, "!help", /!destroy SESSION/);
    });

    test("an unknown !word is answered with the nearest command, and other text is not", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      const { bot } = whole();
      await person.ask(room, "!contxt", /Did you mean `!context`/);
      await person.ask(room, `${bot.user_id}: !wow`, /There is no command `!wow`/);
      await person.ask(room, `${bot.user_id.slice(1).split(":")[0]}: !context`, /Context:/);
      await person.ask(room, "! not a word", /You said: ! not a word/);
    });

    test("!settings changes the language and streaming of the one who says it", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      await person.ask(room, "!settings", /Language:\*\* en.*\n.*Streaming:\*\* on/);
      await person.ask(room, "!settings language ru", /Язык:\*\* ru/);
      await person.ask(room, "!yes", /Ничего не ждёт ответа/);
      await person.ask(room, "!settings streaming off", /выключен/);
      await person.ask(room, "!settings colour blue", /Напишите/);
      await person.ask(room, "!settings language xx", /Напишите/);
      const { person: other, room: otherRoom } = await settle("boris");
      await other.ask(otherRoom, "!yes", /Nothing is waiting/);
    });

    test("!new makes a room and invites the one who asked", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      const { text } = await person.ask(room, "!new Garden", /matrix\.to/);
      const made = decodeURIComponent(/#\/(\S+)/.exec(text)?.[1] ?? "");
      await person.untilSo("an invite", () => person.client.getRoom(made)?.getMyMembership() === "invite");
      await person.client.joinRoom(made);
      await person.untilSo("the room is there", () => person.client.getRoom(made)?.getMyMembership() === "join");
      assert.equal(person.client.getRoom(made)?.name, "Garden");
      await person.ask(made, "Zqy", /You said: Zqy/);
    });

    test("!stop without an answer under way says so", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      await person.ask(room, "!stop", /No answer is under way/);
    });

    test("only operators may steer the runtime", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      const ofOne = ["watch x", "guide x y", "answer x y", "pause x", "resume x", "destroy x", "fork x 1"];
      const commands = [...ofOne, "agents", "inbox", "start joke", "cost"];
      for (const command of commands) await person.ask(room, `!${command}`, /Only operators/);
      assert.equal(person.heard(room).filter(({ text }) => /Only operators/.test(text)).length, commands.length);
    });

    test("operators list, watch, guide, pause, resume and end sessions", TIMEOUT, async () => {
      const { person: olga, room } = await settle("olga");
      await api("/api/agents", {
        agent_id: "joker",
        moniker: "joke",
        session_id: "joker-1",
        params: { subject: "tea" },
        options: { step_interval_ms: 300 },
      });
      await olga.ask(room, "!agents", /\*\*joker\*\* \(joke\): running.*`joker-1`/);
      await olga.ask(room, "!watch joker-1", /^Watching `joker-1`/);
      await olga.hears(room, /joker-1 #\d+\*\* .*tea/s);
      await olga.ask(room, "!guide joker-1 penguins", /joker-1 #\d+\*\* .*penguins/s);
      await olga.ask(room, "!pause joker", /`joker-1` is paused/);
      const paused = await api("/api/sessions/joker-1");
      assert.equal(paused["status"], "paused");
      assert.deepEqual(paused["pause_reason"], { kind: "person", user_id: olga.user_id }, "it says who paused it");
      await olga.ask(room, "!resume joker-1", /`joker-1` is resumed/);
      await olga.ask(room, "!destroy joker-1", /will end for good/);
      assert.notEqual((await api("/api/sessions/joker-1"))["status"], "stopped", "it is asked first");
      await olga.ask(room, "!yes", /`joker-1` is ended/);
      await olga.hears(room, /`joker-1` is stopped/);
      const iterations = olga
        .heard(room)
        .flatMap(({ text }) => [...text.matchAll(/joker-1 #(\d+)\*\*/g)].map((match) => Number(match[1])));
      assert.deepEqual(
        iterations,
        [...new Set(iterations)].sort((a, b) => a - b),
        "each step once, in order",
      );
      await olga.ask(room, "!pause joker-1", /was not paused: /);
      await olga.ask(room, "!watch nowhere", /There is no session `nowhere`/);
      await olga.ask(room, "!guide", /!guide SESSION text/);
      await olga.ask(room, "!watch off", /Nothing is watched here/);
    });
  });
}
