import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { launchChromium } from "../console/chromium.ts";
import { Api, pathOf } from "../server/api.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";

type Seen = { session: number[]; all: Record<string, number[]> };

describe("the browser's EventSource", () => {
  test("comes back by itself after the server was killed, and has every step", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const browser = await launchChromium();
    try {
      const api = new Api(server.url);
      const page = await browser.newPage();
      await page.goto(`${server.url}/docs`);
      const session_id = "counted";
      await api.create("count", { session_id, params: { to: 150, delay_ms: 10 } });
      await page.evaluate(
        (path) => {
          const seen: Seen = { session: [], all: {} };
          Object.assign(globalThis, { seen });
          const follow = (address: string, take: (step: { session_id: string; iteration: number }) => void) =>
            new EventSource(address).addEventListener("agent_step", (event) =>
              take(JSON.parse((event as MessageEvent).data as string)),
            );
          follow(`${path}?after_iteration=-1`, ({ iteration }) => seen.session.push(iteration));
          follow("/api/events", (step) => (seen.all[step.session_id] ??= []).push(step.iteration));
        },
        pathOf("sessions", session_id, "events"),
      );
      const until = (count: number) =>
        page.waitForFunction((n) => (globalThis as unknown as { seen: Seen }).seen.session.length >= n, count);
      await until(20);
      await server.kill();
      await server.start();
      await api.create("count", { session_id: "another", params: { to: 5 } });
      await until(151);
      await page.waitForFunction(() => {
        const { all } = (globalThis as unknown as { seen: Seen }).seen;
        return all["counted"]?.includes(150) && new Set(all["another"]).size === 6;
      });
      const { session, all } = await page.evaluate(() => (globalThis as unknown as { seen: Seen }).seen);
      const every = Array.from({ length: 151 }, (_, index) => index);
      assert.deepEqual(session, every, "each once, in order");
      const heard = [...new Set(all["counted"])].sort((a, b) => a - b);
      assert.deepEqual(heard, every.slice(heard[0]), "none is missing from the first on that it heard");
    } finally {
      await browser.close();
    }
  });
});
