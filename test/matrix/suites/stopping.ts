import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { modelEnvironment } from "../../agent-ws/model-environment.ts";
import { ModelServer } from "../../llm/model-server.ts";
import { ServerProcess, TIMEOUT, within } from "../../server/server-fixture.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import { agentEnvironment, Scene } from "../scene.ts";

export function stoppingSuite(): void {
  describe("!stop with a model behind the agent", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();

    test("ends the model's call, keeps what was said, and leaves the agent free", TIMEOUT, async () => {
      await using model = await ModelServer.open();
      await using server = await ServerProcess.start(modelEnvironment(model));
      await using scene = new Scene(homeserver());
      const bot = await scene.bot(agentEnvironment(server.url));
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.say(room, "Tell me a tale.");
      const call = await model.next();
      call.say('{"tool": "reply", "text": "Once upon');
      await anna.hears(room, /^Once upon …/);
      await anna.say(room, "!stop");
      await within(20_000, call.left, () => "the model's call went on");
      await anna.hears(room, /^Once upon\n\n\*\(stopped\)\*$/);
      const again = await model.next();
      await again.reply(JSON.stringify({ tool: "reply", text: "Stopped." }));
      await anna.say(room, "And now?");
      await (await model.next()).reply(JSON.stringify({ tool: "reply", text: "Now this." }));
      await anna.hears(room, /^Now this\.$/);
      assert.ok(!anna.heard(room).some(({ text }) => text === "Stopped."));
      await anna.ask(room, "!context", /\*\*Agent:\*\* ready/);
    });
  });
}
