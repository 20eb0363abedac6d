import assert from "node:assert/strict";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/domain/json.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { ChatSession } from "./chat-session.ts";
import { FORMATS, sharedLlmWorld, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import { type Answer, reply } from "./model-server.ts";

const move = (tool: string, args: JsonObject = {}): Answer => reply(JSON.stringify({ tool, args }));
const answer = (text: string): Answer => reply(JSON.stringify({ tool: "reply", text }), { piece: 5 });

for (const format of FORMATS)
  describe(`a chat with a model (${format})`, () => {
    const server = sharedModelServer();
    const world = sharedLlmWorld(server, { format });
    const inWorkspace = (path: string) => join(world().workspace, path);
    /** What the model was told of its own work before its last move. */
    const work = () =>
      server().calls.at(-1)?.said("user").split("What you did for the last message, one tool on each line:\n")[1] ?? "";

    test("answers with the model's words, told as they grow, and remembers both sides", TIMEOUT, async () => {
      const chat = await ChatSession.open(world(), { instructions: "Speak like a pirate." });
      server().will(answer('Ahoy, "Ada" 😀!'), answer("You are Ada."));
      const first = await chat.say("I am Ada.");
      assert.deepEqual([first.text, first.deltas], ['Ahoy, "Ada" 😀!', 'Ahoy, "Ada" 😀!']);
      const second = await chat.say("Who am I?");
      assert.deepEqual([second.text, second.step.tokens_used], ["You are Ada.", 150]);
      const [, call] = server().calls;
      assert.match(call?.said("system") ?? "", /Speak like a pirate\./);
      assert.match(
        call?.said("user") ?? "",
        /\{"from":"user","text":"I am Ada\."\}\n\{"from":"agent","text":"Ahoy, \\"Ada\\" 😀!"\}\n\{"from":"user","text":"Who am I\?"\}$/,
      );
      assert.deepEqual(second.state.turns, [
        { role: "user", text: "I am Ada." },
        { role: "agent", text: 'Ahoy, "Ada" 😀!' },
        { role: "user", text: "Who am I?" },
        { role: "agent", text: "You are Ada." },
      ]);
    });

    test("lists, searches, reads and writes for the model, and tells it what came of it", TIMEOUT, async () => {
      await writeFile(inWorkspace("tea.md"), "Green tea is steeped at 80 degrees.\n");
      const chat = await ChatSession.open(world());
      server().will(
        move("list_files"),
        move("search_files", { words: "steeped GREEN" }),
        move("read_file", { path: "/workspace/tea.md" }),
        move("write_file", { path: "out/answer.md", text: "80 degrees" }),
        answer("It is in out/answer.md."),
      );
      const said = await chat.say("How is green tea made? Write it down.");
      assert.deepEqual([said.text, said.deltas], ["It is in out/answer.md.", "It is in out/answer.md."]);
      assert.equal(await readFile(inWorkspace("out/answer.md"), "utf8"), "80 degrees");
      assert.equal(said.step.tokens_used, 5 * 150);
      for (const done of [
        /"tool":"list_files","args":\{\},"result":".*tea\.md/,
        /"search_files".*"result":"tea\.md:1: Green tea is steeped at 80 degrees\./,
        /"read_file".*"result":"Green tea is steeped at 80 degrees\./,
        /"write_file".*"result":"Wrote out\/answer\.md\./,
      ])
        assert.match(work(), done);
    });

    const REFUSED: [name: string, tool: string, args: JsonObject, told: RegExp][] = [
      ["a tool that there is not", "delete_everything", {}, /There is no tool named delete_everything\./],
      ["a tool without what it needs", "read_file", {}, /Refused: the tool needs path\./],
      ["a path that is no text", "read_file", { path: 7 }, /Refused: the tool needs path\./],
      ["a file that is not there", "read_file", { path: "nowhere.md" }, /Refused: nowhere\.md does not exist\./],
      ["a path that climbs out", "read_file", { path: "../../etc/passwd" }, /Refused: .* is outside the workspace\./],
      ["an absolute path", "read_file", { path: "/etc/passwd" }, /Refused: .* is outside the workspace\./],
      [
        "a path that only begins like the workspace",
        "read_file",
        { path: "/workspace/../etc/passwd" },
        /Refused: .* is outside/,
      ],
      [
        "a file to be written outside",
        "write_file",
        { path: "../out.md", text: "x" },
        /Refused: .* is outside the workspace\./,
      ],
      ["a path that no file can have", "read_file", { path: "x".repeat(400) }, /Refused: /],
      ["a file as a folder", "write_file", { path: "plain.md/below.md", text: "x" }, /Refused: /],
    ];
    for (const [name, tool, args, told] of REFUSED)
      test(`refuses ${name}, says so to the model and goes on`, TIMEOUT, async () => {
        await writeFile(inWorkspace("plain.md"), "plain");
        const chat = await ChatSession.open(world());
        server().will(move(tool, args), answer("I may not."));
        assert.equal((await chat.say("Try it.")).text, "I may not.");
        assert.match(work(), told);
        assert.ok(!work().includes(world().workspace), "the folder's true place is nobody's business");
      });

    test("follows no link out of the workspace, to read or to write", TIMEOUT, async () => {
      await using outside = await scratchFolder();
      await writeFile(join(outside.path, "secret.md"), "the secret");
      await mkdir(inWorkspace("links"), { recursive: true });
      await symlink(outside.path, inWorkspace("links/folder"));
      await symlink(join(outside.path, "secret.md"), inWorkspace("links/file.md"));
      const chat = await ChatSession.open(world());
      server().will(
        move("read_file", { path: "links/folder/secret.md" }),
        move("read_file", { path: "links/file.md" }),
        move("write_file", { path: "links/folder/new.md", text: "x" }),
        move("write_file", { path: "links/file.md", text: "x" }),
        move("search_files", { words: "secret" }),
        answer("No."),
      );
      await chat.say("Try the links.");
      assert.ok(!work().includes("the secret"));
      assert.equal(work().match(/Refused: /g)?.length, 4, work());
      assert.equal(await readFile(join(outside.path, "secret.md"), "utf8"), "the secret");
    });

    test("cuts what is too long for the model", TIMEOUT, async () => {
      await writeFile(inWorkspace("long.md"), "word ".repeat(100_000));
      const chat = await ChatSession.open(world());
      server().will(move("read_file", { path: "long.md" }), answer("Long."));
      await chat.say("Read it.");
      assert.ok(work().length < 25_000, `${work().length}`);
    });

    test("gives up on a model that uses tool after tool and never answers", TIMEOUT, async () => {
      const session_id = await world().create("chat");
      server().otherwise(move("list_files"));
      await world().submit({ action_type: "agent_input", session_id, payload: { text: "Hello?" } });
      const session = await world().untilStatus(session_id, "error");
      assert.match(session.last_error ?? "", /^bad_output: .*more than 12 tools/);
      assert.equal(server().calls.length, 13);
    });

    test("corrects an answer that is not in the asked form once, with the form", TIMEOUT, async () => {
      const chat = await ChatSession.open(world());
      server().will(reply("Hello, I am a mere text."), answer("Hello, I am a mere text."));
      assert.equal((await chat.say("Hi.")).text, "Hello, I am a mere text.");
      assert.match(server().calls[1]?.said("system") ?? "", /"tool": "reply"/);
      assert.equal(server().calls[1]?.said("user"), "Hello, I am a mere text.");
    });

    test("answers several messages that came together in one step", TIMEOUT, async () => {
      const session_id = await world().create("chat");
      await world().do("agent_pause", session_id);
      for (const text of ["One.", "Two."]) await world().do("agent_input", session_id, { text });
      server().will(answer("Both."));
      await world().do("agent_resume", session_id);
      await world().untilIteration(session_id, 0);
      assert.match(
        server().calls[0]?.said("user") ?? "",
        /\{"from":"user","text":"One\."\}\n\{"from":"user","text":"Two\."\}$/,
      );
    });
  });
