import assert from "node:assert/strict";
import { access, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { addPrompt } from "../../src/agent-api/context-prompts.ts";
import { FORMATS, type LlmWorld, sharedLlmWorld, sharedModelServer, TIMEOUT } from "../llm/llm-fixture.ts";
import type { ModelCall } from "../llm/model-call.ts";
import { failing } from "../llm/model-server.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { ChatSession } from "./chat-session.ts";

/** The two prompts, exactly as every chat surface sends them. */
const save = (name: string): string =>
  `Summarize our conversation and save to /workspace/contexts/${name}.md. Reply only with: Saved: ${name}`;
const load = (name: string): string =>
  `Load context from /workspace/contexts/${name}.md and use it as background for our conversation. Reply: Loaded: ${name}`;

const isSummary = (call: ModelCall): boolean => call.said("system").startsWith("Summarise the text");
const SUMMARY = "Ada asked about the *tulip* and will ask again.";
const answers = (call: ModelCall): Promise<void> => call.reply(isSummary(call) ? SUMMARY : "I see.");

const fileOf = (world: LlmWorld, name: string) => readFile(join(world.workspace, `contexts/${name}.md`), "utf8");

/** What holds with and without a model. */
function samePromises(world: () => LlmWorld): void {
  for (const name of ["../../escape", "../../../etc/passwd", "/../../escape"])
    test(`refuses to save to or load from contexts/${name}, and says so in the answer`, TIMEOUT, async () => {
      const chat = await ChatSession.open(world());
      await chat.say("My name is Ada.");
      const saved = await chat.say(save(name));
      assert.match(saved.text, /^I could not save it: .* is outside the workspace\.$/);
      assert.equal(saved.deltas, saved.text);
      await assert.rejects(access(join(world().workspace, "contexts", `${name}.md`)));
      const loaded = await chat.say(load(name));
      assert.match(loaded.text, /^I could not load it: .* is outside the workspace\.$/);
      assert.deepEqual(loaded.state.background, []);
    });

  test("refuses to load through a link that leads out", TIMEOUT, async () => {
    await using outside = await scratchFolder();
    const chat = await ChatSession.open(world());
    await chat.say(save("first"));
    await symlink(outside.path, join(world().workspace, "contexts/linked"));
    assert.match((await chat.say(save("linked/x"))).text, /^I could not save it: .* is outside the workspace\.$/);
  });

  test("says so where there is nothing to load, and keeps the conversation", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    await chat.say("My name is Ada.");
    const said = await chat.say(load("nothing-there"));
    assert.match(said.text, /^I could not load it: .*nothing-there\.md does not exist\.$/);
    assert.equal(said.state.messages.length, 4);
  });

  test("asks before it overwrites a file that it did not save", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    await chat.say("The word is tulip.");
    const mine = "# My own notes\n";
    await mkdir(join(world().workspace, "contexts"), { recursive: true });
    for (const answer of ["no", "something else", "yes"]) {
      await writeFile(join(world().workspace, "contexts/mine.md"), mine);
      const asked = await chat.say(save("mine"));
      assert.match(
        asked.text,
        /contexts\/mine\.md already exists and is not a saved conversation\. Shall I overwrite it\?/,
      );
      assert.equal(await fileOf(world(), "mine"), mine);
      await chat.say(answer);
      if (answer === "yes") assert.match(await fileOf(world(), "mine"), /^# Saved conversation\n[\s\S]*tulip/);
      else assert.equal(await fileOf(world(), "mine"), mine, answer);
    }
    assert.equal((await chat.say(save("mine"))).text, "Saved: mine");
  });

  test("saves again over what it saved before, and loads what is there now", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    await chat.say(save("twice"));
    assert.match(await fileOf(world(), "twice"), /Nothing was said yet\./);
    await chat.say("The word is tulip.");
    assert.equal((await chat.say(save("twice"))).text, "Saved: twice");
    assert.match(await fileOf(world(), "twice"), /tulip/);
    await chat.say(load("twice"));
    const { background } = (await chat.say(load("twice"))).state;
    assert.equal(background.length, 1, "one file is one background");
    assert.equal(background[0]?.text, await fileOf(world(), "twice"));
  });

  test("loads in place of what was loaded before, or beside it, and saves without it", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    await chat.say("The word is tulip.");
    for (const name of ["red", "blue", "green"]) await chat.say(save(name));
    const paths = (said: Awaited<ReturnType<typeof chat.say>>): string[] =>
      said.state.background.map(({ path }) => path.replace(/^.*\//, ""));
    await chat.say(load("red"));
    assert.deepEqual(paths(await chat.say(load("blue"))), ["blue.md"]);
    const both = await chat.say(addPrompt("green"));
    assert.equal(both.text, "Loaded: green");
    assert.deepEqual(paths(both), ["blue.md", "green.md"]);
    const marked = "# Saved conversation\n\nThe secret is marigold.\n";
    await writeFile(join(world().workspace, "contexts/blue.md"), marked);
    assert.deepEqual(paths(await chat.say(addPrompt("blue"))), ["green.md", "blue.md"]);
    await chat.say(save("after"));
    const after = await fileOf(world(), "after");
    assert.doesNotMatch(after, /marigold/);
    assert.match(after, /Loaded as background: .*green\.md, .*blue\.md/);
  });

  test("refuses to load more than it can keep in mind, and keeps what it had", TIMEOUT, async () => {
    const chat = await ChatSession.open(world());
    await mkdir(join(world().workspace, "contexts"), { recursive: true });
    const write = (name: string, size: number) =>
      writeFile(join(world().workspace, `contexts/${name}.md`), "word ".repeat(size / 5));
    await Promise.all([write("small", 20_000), write("half", 45_000), write("huge", 60_005)]);
    assert.equal((await chat.say(load("small"))).text, "Loaded: small");
    for (const prompt of [load("huge"), addPrompt("half")]) {
      const { text, state } = await chat.say(prompt);
      assert.match(text, /^I could not load it: its \d+ characters are too many \(.*at most \d+\)\.$/);
      assert.deepEqual(
        state.background.map(({ text: kept }) => kept.length),
        [20_000],
      );
    }
    assert.equal((await chat.say(load("half"))).text, "Loaded: half");
  });
}

for (const format of FORMATS)
  describe(`the save and load prompts with a model (${format})`, () => {
    const server = sharedModelServer();
    const world = sharedLlmWorld(server, { format });

    test("write the model's summary of the conversation, and reply only with the requested word", TIMEOUT, async () => {
      server().otherwise(answers);
      const chat = await ChatSession.open(world());
      await chat.say("My name is Ada. Tell me about the tulip.");
      const said = await chat.say(save("ada"));
      assert.deepEqual([said.text, said.deltas, said.step.tokens_used], ["Saved: ada", "Saved: ada", 150]);
      assert.equal(await fileOf(world(), "ada"), `# Saved conversation\n\n${SUMMARY}\n`);
      const summaries = server().calls.filter(isSummary);
      assert.equal(summaries.length, 1);
      assert.match(
        summaries[0]?.said("user") ?? "",
        /\{"from":"user","text":"My name is Ada\. Tell me about the tulip\."\}\n\{"from":"assistant","text":"I see\."\}/,
      );
    });

    test(
      "give another chat what was saved, in every question from then on, and across a restart",
      TIMEOUT,
      async () => {
        server().otherwise(answers);
        const one = await ChatSession.open(world());
        await one.say("My name is Ada.");
        await one.say(save("shared"));
        const other = await ChatSession.open(world());
        assert.equal((await other.say(load("shared"))).text, "Loaded: shared");
        for (const restarts of [0, 1]) {
          if (restarts > 0) await world().restartWithModel();
          await other.say("Who am I?");
          const prompt = server().calls.at(-1)?.said("system") ?? "";
          assert.match(prompt, /What was loaded as background/);
          assert.ok(prompt.includes(SUMMARY));
        }
      },
    );

    test("leave the file alone where the model cannot sum it up", TIMEOUT, async () => {
      server().otherwise(answers);
      const chat = await ChatSession.open(world());
      await chat.say("My name is Ada.");
      await chat.say(save("kept"));
      const before = await fileOf(world(), "kept");
      server().clear();
      server().will(failing(401));
      assert.match((await chat.say(save("kept"))).text, /^I could not save it: /);
      assert.equal(await fileOf(world(), "kept"), before);
    });

    describe("keep the same promises", () => {
      const answering = () => (server().otherwise(answers), world());
      samePromises(answering);
    });
  });

describe("the save and load prompts without a model", () => {
  const world = sharedLlmWorld(null);

  test("write what was said, and another chat answers from it", TIMEOUT, async () => {
    const one = await ChatSession.open(world());
    await one.say("The password of the wifi is marmalade42.");
    assert.equal((await one.say(save("wifi"))).text, "Saved: wifi");
    assert.match(await fileOf(world(), "wifi"), /User: The password of the wifi is marmalade42\./);
    const other = await ChatSession.open(world());
    assert.equal((await other.say(load("wifi"))).text, "Loaded: wifi");
    assert.match((await other.say("What is the password?")).text, /marmalade42/);
  });

  samePromises(world);
});
