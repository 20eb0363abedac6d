import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { within } from "../../within.ts";
import { beginTale } from "../begun-tale.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";

export function stoppingSuite(): void {
  describe("!stop with a model behind the agent", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();

    test("ends the model's call, keeps what was said, and leaves the agent free", TIMEOUT, async () => {
      await using tale = await beginTale(homeserver());
      const { model, anna, room, call } = tale;
      await anna.say(room, "!stop");
      await within(60_000, call.left, () => "the model's call went on");
      await anna.hears(room, /^Once upon\n\n\*\(stopped\)\*$/);
      await anna.say(room, "And now?");
      // The model's next call is for the next question.
      await (await model.next()).reply("Now this.");
      await anna.hears(room, /^Now this\.$/);
      assert.ok(!anna.heard(room).some(({ text }) => text === "Stopped."));
      await anna.ask(room, "!context", /\*\*Agent:\*\* ready/);
    });
  });
}
