import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TIMEOUT } from "../../server/server-fixture.ts";
import { scratchFolder } from "../../store/scratch-folder.ts";
import { within } from "../../within.ts";
import { skipWithoutSynapse } from "../homeserver.ts";
import { HOW_TO_GET_SYNAPSE, installedSynapse } from "../synapse/installation.ts";
import { wholeScene } from "../whole-scene.ts";

const PROGRAM = fileURLToPath(new URL("../nio/nio_user.py", import.meta.url));
type Heard = { body: string; notice: boolean; content: Record<string, unknown>; decrypted: boolean };

export function nioSuite(): void {
  // matrix-nio is installed with Synapse's Python.
  describe("a person with another client, matrix-nio", { skip: skipWithoutSynapse }, () => {
    const whole = wholeScene();

    const begin = async (context: TestContext, ...options: string[]) => {
      const { scene, bot } = whole();
      const { command, args, environment } = (await installedSynapse()) ?? assert.fail(HOW_TO_GET_SYNAPSE);
      const account = await scene.person("nio", { follows: false });
      const programArgs = [scene.url, account.user_id, account.password, bot.user_id, ...options];
      const child = spawn(command, [...args, PROGRAM, ...programArgs], {
        env: environment,
        stdio: ["pipe", "pipe", "inherit"],
      });
      context.after(() => child.kill("SIGKILL"));
      const heard: Heard[] = [];
      let wake = () => {};
      createInterface({ input: child.stdout }).on("line", (line) => {
        heard.push(JSON.parse(line) as Heard);
        wake();
      });
      const hears = async (pattern: RegExp, from: number): Promise<Heard> => {
        const find = () => heard.slice(from).find(({ body }) => pattern.test(body));
        const happened = async (): Promise<void> => {
          while (!find())
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        };
        await within(60_000, happened(), () => `${pattern} was not heard: ${JSON.stringify(heard)}`);
        return find() ?? assert.fail();
      };
      const ask = (text: string, pattern: RegExp): Promise<Heard> => {
        const from = heard.length;
        child.stdin.write(`${JSON.stringify(text)}\n`);
        return hears(pattern, from);
      };
      const end = async (): Promise<void> => {
        child.stdin.end();
        assert.deepEqual(await once(child, "exit"), [0, null]);
      };
      /** The types of the room's messages as stored by the homeserver. */
      const wireTypes = async (): Promise<string[]> => {
        const room = (await hears(/^ROOM /, 0)).body.slice("ROOM ".length);
        const path = `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=100`;
        const headers = { authorization: `Bearer ${account.access_token}` };
        const { chunk } = (await (await fetch(`${scene.url}${path}`, { headers })).json()) as {
          chunk: { type: string; state_key?: string }[];
        };
        return chunk.flatMap(({ type, state_key }) => (state_key === undefined ? [type] : []));
      };
      return { heard, hears, ask, end, wireTypes };
    };

    test("talks, saves, loads and resets as anybody does", TIMEOUT, async (context) => {
      const { ask, hears, end } = await begin(context);
      await hears(/^Hello/, 0);
      assert.equal((await ask("Zqnio", /You said: Zqnio/)).notice, false);
      assert.equal((await ask("!context", /Context:/)).notice, true);
      await ask("!save nio-one", /^Saved as `nio-one`/);
      const list = await ask("!load", /Your saved contexts/);
      assert.equal(list.content["format"], "org.matrix.custom.html");
      await ask("1", /^Loaded `nio-one`/);
      await ask("!reset", /will forget/);
      await ask("!yes", /starts afresh/);
      await ask("!yes", /Nothing is waiting/);
      await end();
    });

    test("talks in an encrypted room, where nothing is sent unencrypted", TIMEOUT, async (context) => {
      await using keys = await scratchFolder();
      const { heard, ask, hears, end, wireTypes } = await begin(context, keys.path);
      await hears(/^Hello/, 0);
      await ask("Zqsecret", /You said: Zqsecret/);
      await whole().bot.kill();
      await whole().bot.start();
      await ask("Zqagain", /You said: Zqagain/);
      assert.deepEqual(
        heard.filter(({ decrypted }) => !decrypted),
        [],
      );
      const types = await wireTypes();
      assert.ok(types.length >= 5, `a welcome, two questions, two answers: ${types.join()}`);
      assert.deepEqual([...new Set(types)], ["m.room.encrypted"]);
      await end();
    });
  });
}
