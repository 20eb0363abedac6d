import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { picture, visitConsole, WITH_BROWSER } from "./console-fixture.ts";

const TOKEN = "a-token-that-nobody-guesses";

/** The addresses of other hosts that a page requested. */
function requestsElsewhere(page: Page, url: string): string[] {
  const addresses: string[] = [];
  page.on("request", (request) => {
    const address = request.url();
    if (!address.startsWith(`${url}/`) && !/^(?:data|blob):/.test(address)) addresses.push(address);
  });
  return addresses;
}

const operation = (page: Page) => page.getByRole("heading", { name: "Start a session of an agent" }).first();

/** Tries a call as a reader would; resolves with the text that the page shows. */
async function tryCall(page: Page, { place, call }: { place: string; call: string }): Promise<string> {
  await page.goto(`/docs#${place}`);
  await page.reload();
  await page.getByRole("button", { name: `(${call})` }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: /^Send get request/ }).click();
  await dialog.getByText(/^\d{3} [A-Z]/).waitFor();
  return dialog.innerText();
}

// A content policy violation or an exception fails each of these: `visitConsole` watches for both.
describe("/docs", WITH_BROWSER, () => {
  const server = sharedServer();

  for (const [colorScheme, width] of [
    ["light", 1440],
    ["dark", 375],
  ] as const)
    test(`shows operations ${width} wide and ${colorScheme}, and asks no other host`, TIMEOUT, async (t) => {
      const { url } = server();
      const { page } = await visitConsole(t, url, { colorScheme, viewport: { width, height: 900 } });
      const elsewhere = requestsElsewhere(page, url);
      await page.goto("/docs");
      await operation(page).waitFor();
      await page.waitForLoadState("networkidle");
      await picture(page, `api-reference-${width}-${colorScheme}`);
      assert.deepEqual(elsewhere, []);
    });

  test("answers a call that is tried in it", TIMEOUT, async (t) => {
    const { url } = server();
    const { page } = await visitConsole(t, url);
    const elsewhere = requestsElsewhere(page, url);
    const shown = await tryCall(page, { place: "tag/system/GET/api/monikers", call: "get /api/monikers" });
    assert.match(shown, /200 OK/);
    assert.match(shown, /"name": "agent"/);
    assert.deepEqual(elsewhere, []);
  });
});

describe("/docs of a server with a token", WITH_BROWSER, () => {
  const server = sharedServer({ EVERSTEP_TOKEN: TOKEN });

  test("asks for the token, and calls carry it", TIMEOUT, async (t) => {
    const { page } = await visitConsole(t, server().url);
    await page.goto("/docs");
    for (const token of ["a wrong one", TOKEN]) {
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Continue" }).click();
      if (token !== TOKEN) await page.getByRole("alert").filter({ hasText: "The token is wrong." }).waitFor();
    }
    await operation(page).waitFor();
    const shown = await tryCall(page, { place: "tag/system/GET/api/monikers", call: "get /api/monikers" });
    assert.match(shown, /200 OK/);
  });
});
