import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { ServerProcess, sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { within } from "../within.ts";
import { DeafClient } from "./deaf-client.ts";
import { RawClient } from "./raw-client.ts";

/** More than the operating system buffers between two processes, so that the rest has to wait in the server. */
const MOST_QUESTIONS = 1000;
const MOST_RUBBISH = 2_000_000;
const LONGEST_WAIT_MS = 60_000;
const MOST_MEMORY = 150e6;

async function writeLongFile({ folder }: ServerProcess): Promise<void> {
  await mkdir(join(folder, "workspace"), { recursive: true });
  await writeFile(join(folder, "workspace/long.md"), "茶".repeat(20_000));
}

describe("a client that does not read", () => {
  const server = sharedServer();
  before(() => writeLongFile(server()));

  const memory = async (): Promise<number> => {
    const text = await (await fetch(`${server().url}/metrics`)).text();
    return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1]);
  };

  test("holds up the others for a while only, and is dropped", TIMEOUT, async () => {
    using other = await RawClient.open(server().url);
    using deaf = await DeafClient.open(server().url);
    assert.match((await other.say("help")).text, /list files/);
    const atFirst = await memory();
    let longest = 0;
    // The others are answered after the deaf one, so their delay shows how long it holds them up.
    for (let questions = 0; longest < 1000; questions += 1) {
      assert.ok(questions < MOST_QUESTIONS && !deaf.isGone, "it never held anyone up, so nothing was shown");
      await deaf.ask("read long.md");
      const asked = performance.now();
      assert.match((await other.say("help")).text, /list files/);
      longest = performance.now() - asked;
    }
    assert.ok(longest < LONGEST_WAIT_MS, `${longest} ms`);
    const pongs = setInterval(() => deaf.pong(), 100);
    await within(60_000, deaf.gone, () => "it is still there").finally(() => clearInterval(pongs));
    const grown = (await memory()) - atFirst;
    assert.ok(grown < MOST_MEMORY, `${grown / 1e6} MB more`);
    assert.match((await other.say("help")).text, /list files/);
  });

  test("is dropped when it keeps sending rubbish, before the replies fill the memory", TIMEOUT, async () => {
    using other = await RawClient.open(server().url);
    using deaf = await DeafClient.open(server().url);
    const atFirst = await memory();
    let sent = 0;
    while (sent < MOST_RUBBISH && !deaf.isGone) {
      await deaf.send("rubbish");
      if (++sent % 1000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await within(60_000, deaf.gone, () => `it is still there after ${sent} frames`);
    const grown = (await memory()) - atFirst;
    assert.ok(grown < MOST_MEMORY, `${grown / 1e6} MB more after ${sent} frames`);
    assert.match((await other.say("help")).text, /list files/);
  });
});

test("a client that never reads is dropped even if it sends unsolicited pongs", TIMEOUT, async () => {
  await using server = await ServerProcess.start({ EVERSTEP_SLOW_READER_S: "2" });
  await writeLongFile(server);
  using other = await RawClient.open(server.url);
  using deaf = await DeafClient.open(server.url);
  const pongs = setInterval(() => deaf.pong(), 20);
  try {
    for (let questions = 0, waited = 0; waited < 1000; questions += 1) {
      assert.ok(questions < MOST_QUESTIONS && !deaf.isGone, "it never held anyone up, so nothing was shown");
      await deaf.ask("read long.md");
      const asked = performance.now();
      await other.say("help");
      waited = performance.now() - asked;
    }
    // The others are answered again, so it was dropped. What it reads now ends with the reason.
    await Promise.race([deaf.hear("reader_too_slow"), deaf.gone.then(() => assert.fail("it was not told why"))]);
    await within(LONGEST_WAIT_MS, deaf.gone, () => "it is still there, kept by its pongs");
  } finally {
    clearInterval(pongs);
  }
});
