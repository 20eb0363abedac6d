import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { describe, test } from "node:test";
import { REPOSITORY } from "../../repository-files.ts";
import { eventually, TIMEOUT } from "../../server/server-fixture.ts";
import type { BotProcess } from "../bot-process.ts";
import { sharedHomeserver, skipWithoutHomeserver } from "../homeserver.ts";
import { Scene } from "../scene.ts";

const FAULTY = {
  NODE_OPTIONS: `--import ${join(REPOSITORY, "test/matrix/fault-at-signal.ts")}`,
  MATRIX_PLATFORM_BACKEND: "mock",
};

/** The bot's processes in the order they started: under a supervisor, the last is the bot itself. */
const pidsOf = ({ stderr }: BotProcess): number[] =>
  [...stderr.matchAll(/^pid (\d+)$/gm)].map(([, pid]) => Number(pid));

export function crashesSuite(): void {
  describe("the bot's process", { skip: skipWithoutHomeserver }, () => {
    const homeserver = sharedHomeserver();

    test("logs an error that nobody caught with its origin, and ends in order with 1", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot(FAULTY);
      const ended = once(bot.child, "exit");
      process.kill(bot.pid, "SIGUSR2");
      assert.deepEqual(await ended, [1, null]);
      const [fatal] = bot.stderr.split("\n").filter((line) => line.includes('"level":60'));
      const { origin, err } = JSON.parse(fatal ?? "") as { origin: string; err: { message: string } };
      assert.deepEqual([origin, err.message], ["unhandledRejection", "a defect"]);
    });

    test("outlives an error of a connection", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ ...FAULTY, FAULT: "reset" });
      process.kill(bot.pid, "SIGUSR2");
      await eventually("the line in the log", async () => bot.stderr.includes("ECONNRESET"));
      assert.equal(await bot.stop(), 0);
    });

    test("starts again when it crashes under --supervise, and answers what was said meanwhile", TIMEOUT, async () => {
      await using scene = new Scene(homeserver());
      const bot = await scene.bot({ ...FAULTY, EVERSTEP_SUPERVISE: "1" });
      const anna = await scene.person("anna");
      const room = await anna.openRoom([bot.user_id]);
      await anna.ask(room, "!help", /!save/);
      const [supervisor, first] = pidsOf(bot);
      assert.equal(supervisor, bot.pid);
      process.kill(first ?? 0, "SIGUSR2");
      await eventually("its end", async () => bot.stderr.includes("ended with 1; restarting in 1 s"));
      await anna.ask(room, "still there?", /still there\?/);
      assert.equal(pidsOf(bot).length, 3);
      assert.equal(await bot.stop(), 0);
    });
  });
}
