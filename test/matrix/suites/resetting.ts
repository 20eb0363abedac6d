import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { agentUrl } from "../../agent-ws/raw-client.ts";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { skipWithoutHomeserver } from "../homeserver.ts";
import { wholeScene } from "../whole-scene.ts";

export function resettingSuite(): void {
  describe("resetting the agent from a room", { skip: skipWithoutHomeserver }, () => {
    const whole = wholeScene({ MATRIX_OPERATORS: "@*" });
    const settle = async () => {
      const { scene, bot } = whole();
      const person = await scene.person("rita");
      return { person, room: await person.openRoom([bot.user_id]) };
    };
    const chatSession = async (): Promise<string> => {
      const response = await fetch(`${whole().server.url}/api/agents/default`);
      return ((await response.json()) as { latest: { session_id: string } }).latest.session_id;
    };

    test("says what will be lost, and does it after !yes", TIMEOUT, async () => {
      const { person, room } = await settle();
      await person.ask(room, "Zqb", /You said/);
      await person.ask(room, "!save before-reset", /^Saved/);
      const before = await chatSession();
      const question = await person.ask(room, "!reset", /will forget this conversation/);
      for (const expected of ["for everyone", "before-reset", "`!yes`", "`!save name`", "`!no`"])
        assert.ok(question.text.includes(expected), expected);
      assert.equal(await chatSession(), before, "nothing happens before the answer");
      await person.ask(room, "!yes", /starts afresh/);
      assert.notEqual(await chatSession(), before);
      assert.match((await person.ask(room, "!context", /Context:/)).text, /not saved yet/);
      await person.ask(room, "!yes", /Nothing is waiting/);
    });

    test("does nothing after !no or !cancel", TIMEOUT, async () => {
      const { person, room } = await settle();
      const before = await chatSession();
      for (const word of ["!no", "!cancel"]) {
        await person.ask(room, "!reset", /will forget/);
        await person.ask(room, word, /^Cancelled/);
        await person.ask(room, "!yes", /Nothing is waiting/);
      }
      assert.equal(await chatSession(), before);
    });

    test("saves first after !save name", TIMEOUT, async () => {
      const { person, room } = await settle();
      await person.ask(room, "Okapi", /You said: Okapi/);
      const before = await chatSession();
      await person.ask(room, "!reset", /will forget/);
      await person.ask(room, "!save okapi", /^Saved as `okapi`/);
      await person.hears(room, /starts afresh/);
      assert.notEqual(await chatSession(), before);
      assert.match(await readFile(join(whole().server.folder, "workspace/contexts/okapi.md"), "utf8"), /Okapi/);
    });

    test("asks about overwriting first where the name exists, and resets after that save", TIMEOUT, async () => {
      const { person, room } = await settle();
      await person.ask(room, "!save twofold", /^Saved/);
      const before = await chatSession();
      await person.ask(room, "!reset", /will forget/);
      const question = await person.ask(room, "!save twofold", /Overwrite it\?/);
      assert.match(question.text, /earlier question, whether to reset, no longer applies/);
      await person.ask(room, "!yes", /^Saved as `twofold`/);
      await person.hears(room, /starts afresh/);
      assert.notEqual(await chatSession(), before);
    });

    test("a newer question takes the place of the reset, visibly, and !yes means the newer one", TIMEOUT, async () => {
      const { person, room } = await settle();
      const created = await fetch(`${whole().server.url}/api/agents`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ agent_id: "lister", moniker: "echo", session_id: "lister-1" }),
      });
      assert.equal(created.status, 202);
      const before = await chatSession();
      await person.ask(room, "!reset", /will forget/);
      const question = await person.ask(room, "!destroy lister-1", /will end for good/);
      assert.match(question.text, /whether to reset, no longer applies/);
      await person.ask(room, "!yes", /`lister-1` is ended/);
      await person.ask(room, "!yes", /Nothing is waiting/);
      assert.equal(await chatSession(), before, "the reset was not meant");
    });

    test("a 👍 on the question counts as a yes, one on something else does not", TIMEOUT, async () => {
      const { person, room } = await settle();
      const help = await person.ask(room, "!help", /!save/);
      const question = await person.ask(room, "!reset", /will forget/);
      await person.react(room, help.event_id, "👍");
      await person.ask(room, "!context", /Context:/);
      assert.ok(!person.heard(room).some(({ text }) => /starts afresh/.test(text)));
      await person.react(room, question.event_id, "👍🏽");
      await person.hears(room, /starts afresh/);
    });

    const FAILURES: [name: string, answer: RequestListener, said: RegExp][] = [
      ["has no such endpoint", (_, response) => response.writeHead(404).end(), /no reset endpoint.*Nothing was lost/],
      [
        "refuses",
        (_, response) => response.writeHead(403).end('{"detail":"not today"}'),
        /refused the reset \(not today\).*Nothing was lost/,
      ],
      ["does not answer", () => {}, /did not answer the reset in time.*Nothing was lost/],
    ];
    describe("where the agent", { concurrency: FAILURES.length }, () => {
      for (const [name, answer, said] of FAILURES)
        test(`${name}, says so plainly`, TIMEOUT, async (context) => {
          const { scene, server } = whole();
          const http = createServer(answer).listen(0, "127.0.0.1");
          context.after(() => {
            http.closeAllConnections();
            http.close();
          });
          await once(http, "listening");
          const bot = await scene.bot({
            AGENT_WS_URL: agentUrl(server.url),
            AGENT_BASE_URL: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
          });
          const person = await scene.person("sam");
          const room = await person.openRoom([bot.user_id]);
          const before = await chatSession();
          await person.ask(room, "!reset", /will forget/);
          await person.ask(room, "!yes", said);
          assert.equal(await chatSession(), before);
          await person.ask(room, "Zqa?", /You said: Zqa/);
        });
    });
  });
}
