import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { sharedLlmWorld, TIMEOUT } from "../llm/llm-fixture.ts";
import { ChatSession } from "./chat-session.ts";

const QUESTION = "notes.md already exists. Shall I overwrite it? (yes or no)";

describe("a chat without a model that is to overwrite a file", () => {
  const world = sharedLlmWorld(null);
  const notes = () => readFile(join(world().workspace, "notes.md"), "utf8");
  /** A chat that was asked to overwrite the file, and asks for confirmation. */
  const asked = async (): Promise<ChatSession> => {
    await writeFile(join(world().workspace, "notes.md"), "old");
    const chat = await ChatSession.open(world());
    const said = await chat.say("write notes.md: new");
    assert.deepEqual([said.text, said.deltas], [QUESTION, QUESTION]);
    assert.equal((said.step.data as { question: { text: string } }).question.text, QUESTION);
    assert.equal(said.state.question?.tool, "write_file");
    assert.equal(await notes(), "old", "nothing was written yet");
    return chat;
  };

  for (const yes of ["yes", " Yes. ", "y", "да", "OK!"])
    test(`does so after ${JSON.stringify(yes)}`, TIMEOUT, async () => {
      const chat = await asked();
      const said = await chat.say(yes);
      assert.deepEqual([said.text, said.deltas, said.state.question], ["Wrote notes.md.", "Wrote notes.md.", null]);
      assert.equal(await notes(), "new");
    });

  for (const no of ["no", "No!", "нет", "cancel"])
    test(`leaves it after ${JSON.stringify(no)}`, TIMEOUT, async () => {
      const chat = await asked();
      const said = await chat.say(no);
      assert.deepEqual([said.text, said.state.question], ["I left it as it is.", null]);
      assert.equal(await notes(), "old");
    });

  test("takes anything else as a new message, after which a yes no longer counts as consent", TIMEOUT, async () => {
    const chat = await asked();
    const other = await chat.say("How is the weather?");
    assert.equal(other.state.question, null);
    await chat.say("yes");
    assert.equal(await notes(), "old");
  });

  test("does so after a yes that follows a restart, since the question is in its state", TIMEOUT, async () => {
    const chat = await asked();
    await world().restartWithModel();
    assert.equal((await chat.say("yes")).text, "Wrote notes.md.");
    assert.equal(await notes(), "new");
  });
});
