import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EverstepError } from "../src/domain/errors.ts";
import { redactUrl, redactUrls } from "../src/domain/redact.ts";

const SECRET = "hunter2";

describe("a text that is printed", () => {
  const HIDING = [
    `postgres://u:${SECRET}@db/everstep`,
    `postgres://u:pa/${SECRET}@db/everstep`,
    `postgres://u:pa?${SECRET}#@db/everstep`,
    `postgres:u:${SECRET}@db/everstep`,
    `u:${SECRET}@db`,
    `https://${SECRET}@matrix.example.org`,
    `HTTPS://u:${SECRET}@PROXY:3128`,
    `http://127.0.0.1:4180/v1?api_key=${SECRET}&x=1`,
    `ws://127.0.0.1:4180/agent_ws/?a=1&token=${SECRET}#end`,
    `postgres://db/everstep?user=u&password=${SECRET}`,
    `socks5://u:p@ss@${SECRET}@proxy:1080,http://u:${SECRET}@other`,
  ];
  for (const url of HIDING)
    test(`hides the secret of ${url} and keeps the rest`, () => {
      for (const text of [url, `cannot reach ${url}, sorry`, JSON.stringify({ msg: `at "${url}"` })])
        assert.ok(!redactUrls(text).includes(SECRET), redactUrls(text));
      assert.match(redactUrls(`EVERSTEP_STORE=${url}; next`), /^EVERSTEP_STORE=\S*…\S* next$/);
    });

  test("is unchanged where there is no secret", () => {
    const plain = [
      "lancedb:./data",
      "postgres://db:5432/everstep?sslmode=require",
      "http://127.0.0.1:4180/api/actions?session_id=a&limit=5",
      "@everstep:example.org is up at https://matrix.example.org",
      "write to somebody@example.org: they know",
      "a=b ? c@d",
    ];
    for (const text of plain) assert.equal(redactUrls(text), text);
  });

  test("one value is hidden also where it has spaces and quotes", () => {
    for (const url of [`postgres:u:a ${SECRET}@db`, `postgres://u:"${SECRET}"@db`])
      assert.ok(!redactUrl(url).includes(SECRET));
  });

  test("an error for people hides it wherever it came from", () => {
    const error = new EverstepError("store_unavailable", `no way to postgres://u:${SECRET}@db`, "look at it");
    assert.equal(error.message, "store_unavailable: no way to postgres://…@db; look at it");
  });

  test("takes time in proportion to its length, whatever it is", () => {
    const length = 1024 * 1024;
    for (const piece of ["a:", "?", "?key=", "a://", "@", "a:@", " ", "://@"]) {
      const text = piece.repeat(length / piece.length);
      // CPU time, which other load hardly affects; a nonlinear function is slow every time.
      const tries = Array.from({ length: 3 }, () => {
        const started = process.cpuUsage();
        redactUrls(`${text}=`);
        redactUrls(`${text}@`);
        const { user, system } = process.cpuUsage(started);
        return (user + system) / 1000;
      });
      assert.ok(Math.min(...tries) < 500, `${piece}: ${Math.min(...tries).toFixed()} ms`);
    }
  });
});
