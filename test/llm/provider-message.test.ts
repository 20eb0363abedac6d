import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { providerMessage } from "../../src/monikers/llm/provider-message.ts";

const KEY = "sk-proj-0123456789abcdef";
const PROMPT = 'My name is Ada.\n"The password" of the wifi is marmalade42, and the PIN is 1234.';

describe("what a provider says of a failure", () => {
  const ECHOES = [
    PROMPT,
    JSON.stringify(PROMPT),
    JSON.stringify(JSON.stringify({ content: PROMPT })),
    PROMPT.toUpperCase(),
    PROMPT.replaceAll(/\s+/g, " "),
    PROMPT.slice(18),
    `{"messages":[{"role":"user","content":${JSON.stringify(PROMPT)}}]}`,
  ];
  for (const [index, echo] of ECHOES.entries())
    test(`does not repeat what the model was told (${index + 1})`, () => {
      const words = providerMessage(`the request is not valid: ${echo}`, KEY, [JSON.stringify({ text: PROMPT })]);
      assert.match(words, /^the request is not valid: /);
      assert.doesNotMatch(words, /marmalade|1234|wifi/i);
    });

  test("does not repeat a short text that was the whole prompt", () =>
    assert.doesNotMatch(providerMessage("bad input 'PIN 1234'", KEY, ["PIN 1234"]), /1234/));

  for (const named of [KEY, `Bearer ${KEY}`, "sk-proj-****cdef", "sk-proj-0123…", "…89abcdef", encodeURIComponent(KEY)])
    test(`hides the key as ${named}`, () => {
      const words = providerMessage(`Incorrect API key provided: ${named}. See the page.`, KEY, []);
      assert.doesNotMatch(words, /sk-proj|cdef/);
      assert.match(words, /^Incorrect API key provided: .*See the page\.$/);
    });

  test("is kept where it repeats nothing", () => {
    for (const words of [
      "this model's maximum context length is 8192 tokens",
      "The model `gpt-9` does not exist or you do not have access to it.",
      "Rate limit reached for requests per min. Limit: 3 / min.",
    ])
      assert.equal(providerMessage(words, KEY, [PROMPT]), words);
  });

  test("takes time in proportion to what the model was told", () => {
    for (const piece of ["\\", "a", "ab ", "\\u", '"']) {
      const prompt = piece.repeat(1_000_000 / piece.length);
      const started = performance.now();
      providerMessage(prompt, KEY, [prompt]);
      assert.ok(performance.now() - started < 2000, `${piece}: ${(performance.now() - started).toFixed()} ms`);
    }
  });
});
