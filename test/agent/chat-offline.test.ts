import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { sharedLlmWorld, TIMEOUT } from "../llm/llm-fixture.ts";
import { ChatSession } from "./chat-session.ts";

describe("a chat without a model", () => {
  const world = sharedLlmWorld(null);
  before(async () => {
    await mkdir(join(world().workspace, "notes"), { recursive: true });
    await writeFile(join(world().workspace, "notes/tea.md"), "Green tea is steeped at 80 degrees.\nBlack tea at 95.\n");
    await writeFile(join(world().workspace, "noël.md"), "Le café de Noël est ouvert.\n");
    await writeFile(join(world().workspace, "one-line.md"), `chameleon ${"x".repeat(100_000)}`);
  });

  const SAYS: [said: string, answer: RegExp][] = [
    ["help", /list files\n.*read PATH/s],
    ["?", /list files/],
    ["list files", /^notes\/tea\.md\nnoël\.md\none-line\.md$/],
    ["Show the files.", /notes\/tea\.md/],
    ["read notes/tea.md", /^Green tea is steeped at 80 degrees\.\nBlack tea at 95\.\n$/],
    ["Read file /workspace/notes/tea.md", /^Green tea/],
    ["search steeped", /^notes\/tea\.md:1: Green tea is steeped at 80 degrees\.$/],
    ["find CAFÉ", /^noël\.md:1: Le café de Noël est ouvert\.$/],
    ["search for cafe", /noël\.md:1/],
    ["search xyzzy", /^Nothing was found\.$/],
    [
      "How hot is green tea steeped?",
      /^This is what I know:\n> Green tea is steeped at 80 degrees\.\n {2}\(notes\/tea\.md:1\)/,
    ],
    ["What of the chameleon?", /^This is what I know:\n> chameleon x{500,1100}…\n {2}\(one-line\.md:1\)$/],
    ["Hm.", /^You said: Hm\.\n.*help/],
    ["Whence xylophones?", /^I know nothing about that\. You said: Whence xylophones\?/],
    ["read nowhere.md", /^Refused: nowhere\.md does not exist\.$/],
    ["read ../secret", /^Refused: \.\.\/secret is outside the workspace\.$/],
    ["read /etc/passwd", /^Refused: \/etc\/passwd is outside the workspace\.$/],
    ["write ../out.md: text", /^Refused: \.\.\/out\.md is outside the workspace\.$/],
    [`read ${"x".repeat(300)}`, /^Refused: /],
    ["read notes", /^Refused: /],
    ["write notes/tea.md/below.md: text", /^Refused: /],
  ];
  for (const [said, answer] of SAYS)
    test(`answers ${JSON.stringify(said.slice(0, 60))}`, TIMEOUT, async () => {
      const chat = await ChatSession.open(world());
      const { text, deltas, step } = await chat.say(said);
      assert.match(text, answer);
      assert.equal(deltas, text);
      assert.equal(step.tokens_used, 0);
    });

  test("writes a file that is new at once, with all its lines", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    assert.equal((await chat.say("write deep/new.md: one\ntwo: three")).text, "Wrote deep/new.md.");
    assert.equal(await readFile(join(world().workspace, "deep/new.md"), "utf8"), "one\ntwo: three");
  });

  test("repeats guidance that is not a text", TIMEOUT, async () => {
    const session_id = await world().create("chat");
    await world().ended(await world().tell(session_id, { odd: [1] }));
    const [step] = await world().steps(session_id);
    assert.match(step?.text ?? "", /\{"odd":\[1\]\}/);
  });
});
