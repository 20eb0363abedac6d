import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readMatrixConfig } from "../../src/surfaces/matrix/config.ts";

const GOOD = {
  MATRIX_HOMESERVER: "https://matrix.example.org",
  MATRIX_USER_ID: "@everstep:example.org",
  MATRIX_ACCESS_TOKEN: "secret",
  MATRIX_ALLOWED_USERS: "@*:example.org",
};

describe("the bot's settings", () => {
  test("have defaults for all but the account and who may use it", () => {
    const config = readMatrixConfig({ ...GOOD, MATRIX_STATE: "" });
    assert.deepEqual(
      [config.MATRIX_STATE, config.MATRIX_PLATFORM_BACKEND, config.MATRIX_LANGUAGE, config.AGENT_BASE_URL],
      ["./matrix-state", "real", "en", "http://127.0.0.1:4180"],
    );
    assert.equal(config.AGENT_WS_URL, "ws://127.0.0.1:4180/agent_ws/");
    assert.ok(config.MATRIX_ALLOWED_USERS("@anna:example.org"));
    assert.ok(!config.MATRIX_OPERATORS("@anna:example.org"));
  });

  const BAD: [changes: Record<string, string>, message: RegExp][] = [
    [{ MATRIX_HOMESERVER: "" }, /MATRIX_HOMESERVER: is not set/],
    [{ MATRIX_HOMESERVER: "example" }, /MATRIX_HOMESERVER: /],
    [
      { MATRIX_HOMESERVER: "https://me:hunter2@example.org" },
      /^config_invalid: MATRIX_HOMESERVER: must not carry a user or a password; (?!.*hunter2)/,
    ],
    [{ AGENT_BASE_URL: "http://me:hunter2@127.0.0.1" }, /AGENT_BASE_URL: must not carry (?!.*hunter2)/],
    [{ MATRIX_USER_ID: "everstep" }, /MATRIX_USER_ID: must be a whole user id/],
    [{ MATRIX_ALLOWED_USERS: "" }, /MATRIX_ALLOWED_USERS: is not set/],
    [{ MATRIX_ACCESS_TOKEN: "" }, /neither MATRIX_ACCESS_TOKEN nor MATRIX_PASSWORD/],
    [{ MATRIX_PLATFORM_BACKEND: "other" }, /MATRIX_PLATFORM_BACKEND: /],
    [{ MATRIX_LANGUAGE: "de" }, /MATRIX_LANGUAGE: /],
  ];
  for (const [changes, message] of BAD)
    test(`with ${JSON.stringify(changes)} are refused with what is wrong`, () =>
      assert.throws(() => readMatrixConfig({ ...GOOD, ...changes }), { code: "config_invalid", message }));
});
