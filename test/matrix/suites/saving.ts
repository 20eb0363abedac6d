import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { skipWithoutHomeserver } from "../homeserver.ts";
import { wholeScene } from "../whole-scene.ts";

export function savingSuite(): void {
  describe("saving and loading in a room", { skip: skipWithoutHomeserver, concurrency: 3 }, () => {
    const whole = wholeScene();
    const contextFile = (name: string) => join(whole().server.folder, "workspace", "contexts", `${name}.md`);
    const settle = async (name: string) => {
      const { scene, bot } = whole();
      const person = await scene.person(name);
      return { person, room: await person.openRoom([bot.user_id]) };
    };

    test("!save name has the agent write the file, and then the name is listed", TIMEOUT, async () => {
      const { person, room } = await settle("anna");
      await person.ask(room, "Zebras", /You said: Zebras/);
      await person.ask(room, "!save zebras", /^Saved as `zebras`\.$/);
      assert.match(await readFile(contextFile("zebras"), "utf8"), /Zebras/);
      assert.match((await person.ask(room, "!load", /Your saved contexts/)).text, /1\. `zebras` \(\d{4}-\d\d-\d\d/);
      assert.match((await person.ask(room, "!context", /Context:/)).text, /`zebras`/);
    });

    test("!save without a name uses the time in UTC as the name", TIMEOUT, async () => {
      const { person, room } = await settle("boris");
      const { text } = await person.ask(room, "!save", /^Saved as/);
      const [, name = "", date = ""] = /`(context-(\d{8})-\d{6})`/.exec(text) ?? assert.fail(text);
      assert.ok(Math.abs(Date.now() - Date.parse(date.replace(/(....)(..)(..)/, "$1-$2-$3"))) < 2 * 86_400_000);
      assert.ok((await stat(contextFile(name))).isFile());
    });

    test("!save refuses a name that is not safe, with the rule", TIMEOUT, async () => {
      const { person, room } = await settle("carl");
      for (const name of ["../escape", "a b", ".hidden", "x".repeat(65), "a/b", "-dash", "CON:1", "a\nb"])
        assert.match((await person.ask(room, `!save ${name}`, /cannot be used/)).text, /1 to 64 letters, digits/, name);
      await person.ask(room, "!load", /no saved contexts yet/);
    });

    test("!save of a name that exists asks first; !no leaves the file, !yes overwrites it", TIMEOUT, async () => {
      const { person, room } = await settle("dora");
      await person.ask(room, "!save twice", /^Saved as/);
      const before = await readFile(contextFile("twice"), "utf8");
      await person.ask(room, "Kangaroos", /You said: Kangaroos/);
      await person.ask(room, "!save twice", /You saved `twice`.*Overwrite it\?/);
      await person.ask(room, "!no", /^Cancelled/);
      assert.equal(await readFile(contextFile("twice"), "utf8"), before);
      await person.ask(room, "!save twice", /Overwrite it\?/);
      await person.ask(room, "!yes", /^Saved as `twice`/);
      assert.match(await readFile(contextFile("twice"), "utf8"), /Kangaroos/);
      await person.ask(room, "!yes", /Nothing is waiting/);
    });

    test("a name that somebody else saved asks as well, and is not in one's own list", TIMEOUT, async () => {
      const { person: emil, room } = await settle("emil");
      await emil.ask(room, "!save theirs", /^Saved as/);
      const { person: fay, room: other } = await settle("fay");
      await fay.ask(other, "!save theirs", /Somebody else saved `theirs`/);
      await fay.ask(other, "!load", /no saved contexts yet/);
      await fay.ask(other, "!load theirs", /You have no saved context named `theirs`/);
    });

    test("!load picks by number and by name, and leaves with 0 and !cancel", TIMEOUT, async () => {
      const { person, room } = await settle("gus");
      await person.ask(room, "Xylophone", /You said: Xylophone/);
      await person.ask(room, "!save gus-one", /^Saved as/);
      await person.ask(room, "!save gus-two", /^Saved as/);
      const list = await person.ask(room, "!load", /Your saved contexts/);
      assert.match(list.text, /1\. `gus-two`.*\n2\. `gus-one`/);
      await person.ask(room, "7", /no number 7.*1 to 2/);
      await person.ask(room, "2", /^Loaded `gus-one`/);
      await person.ask(room, "2", /You said: 2/);
      await person.ask(room, "!load", /Your saved contexts/);
      await person.ask(room, "0", /^Cancelled/);
      await person.ask(room, "!load", /Your saved contexts/);
      await person.ask(room, "!cancel", /^Cancelled/);
      await person.ask(room, "1", /You said: 1/);
      await person.ask(room, "!load gus-two", /^Loaded `gus-two`/);
      await person.ask(room, "!yes", /Nothing is waiting/);
    });

    test("a number from somebody else, or in another room, is an ordinary message", TIMEOUT, async () => {
      const { scene, bot } = whole();
      const [hanna, igor] = [await scene.person("hanna"), await scene.person("igor")];
      const room = await hanna.openRoom([bot.user_id, igor.user_id], [bot.user_id]);
      await igor.client.joinRoom(room);
      await hanna.ask(room, "!save hanna-one", /^Saved as/);
      await hanna.ask(room, "!load", /Your saved contexts/);
      const other = await hanna.openRoom([bot.user_id]);
      await igor.ask(room, "1", /You said: 1/);
      await hanna.ask(other, "1", /You said: 1/);
      await hanna.ask(room, "1", /^Loaded `hanna-one`/);
    });

    test("a list of more than ten goes on with !more, and keeps its numbers", TIMEOUT, async () => {
      const { person, room } = await settle("jane");
      for (let number = 1; number <= 12; number++)
        await person.ask(room, `!save jane-${number}`, new RegExp(`\`jane-${number}\``));
      assert.match((await person.ask(room, "!load", /1–10 of 12/)).text, /10\. `jane-3`/);
      assert.match((await person.ask(room, "!more", /11–12 of 12/)).text, /12\. `jane-1`/);
      await person.ask(room, "!more", /No list with more pages/);
      await person.ask(room, "3", /^Loaded `jane-10`/);
    });
  });
}
