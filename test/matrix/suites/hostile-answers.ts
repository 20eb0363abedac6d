import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import { Scene } from "../scene.ts";
import { WrittenAgent } from "../stand-in.ts";

/** Answers that crash or stall a naive Markdown parser. */
const ANSWERS: Record<string, string> = {
  "5,900 quotes inside each other": `${"> ".repeat(5900)}deep`,
  "thousands of lists inside each other": `${"1. ".repeat(3900)}deep`,
  "thousands of marks of emphasis": `${"*a_".repeat(3900)}deep`,
  "a megabyte of quotes": `${"> ".repeat(500_000)}deep`,
};

export function hostileAnswersSuite(): void {
  describe("an answer that is hard to show", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();

    test("is shown, and so are those after it, also by a bot that is killed meanwhile", TIMEOUT, async () => {
      await using agent = await WrittenAgent.open();
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ AGENT_WS_URL: agent.url, AGENT_BASE_URL: "http://127.0.0.1:1" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      const names = Object.keys(ANSWERS);
      for (const [number, name] of names.entries()) {
        await anna.say(room, name);
        (await agent.question(number)).end(ANSWERS[name]);
        await anna.untilSo(
          name,
          () => anna.heard(room).filter(({ text }) => text.endsWith("deep")).length > number,
          room,
        );
      }
      await bot.kill();
      await anna.say(room, "and now?");
      await bot.start();
      (await agent.question(names.length)).end("All is **well**.");
      const last = await anna.hears(room, /^All is \*\*well\*\*\.$/);
      assert.equal(last.html, "<p>All is <strong>well</strong>.</p>");
      await bot.finish();
    });
  });
}
