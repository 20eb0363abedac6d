import { setTimeout as wait } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import type { Session } from "../../src/domain/session.ts";
import { launchChromium } from "../../test/console/chromium.ts";
import { type EverstepProcess, startEverstep } from "../server/everstep-process.ts";

export type OpenConsole = AsyncDisposable & {
  page: Page;
  browser: Browser;
  create: (params: Record<string, number>) => Promise<string>;
  session: (session_id: string) => Promise<Session>;
};

/** A server and a browser showing its console, both closed with their scope. */
export async function openConsole(folder: string): Promise<OpenConsole> {
  const server: EverstepProcess = await startEverstep(folder);
  const browser = await launchChromium();
  const baseURL = `http://127.0.0.1:${server.port}`;
  const context = await browser.newContext({ baseURL, locale: "en-US", viewport: { width: 1440, height: 900 } });
  const ask = async <Answer>(path: string, body?: unknown): Promise<Answer> => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: JSON_BODY };
    const answer = await fetch(`${baseURL}${path}`, init);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Answer;
  };
  return {
    page: await context.newPage(),
    browser,
    create: async (params) =>
      (await ask<{ session_id: string }>("/api/agents", { agent_id: "bench", moniker: "count", params })).session_id,
    session: (session_id) => ask<Session>(`/api/sessions/${session_id}`),
    [Symbol.asyncDispose]: async () => {
      await browser.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const JSON_BODY = { "content-type": "application/json" };
const LOOK_EVERY_MS = 50;

export async function until(what: string, within_ms: number, isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + within_ms;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`not within ${within_ms} ms: ${what}`);
    await wait(LOOK_EVERY_MS);
  }
}
