import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import OpenAI from "openai";
import { REPOSITORY } from "../repository-files.ts";
import { ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { World } from "../server/world.ts";

let world: World;
let openai: OpenAI;
before(async () => {
  const server = await ServerProcess.start({ EVERSTEP_MONIKERS: join(REPOSITORY, "test/clients/monikers") });
  world = await World.of(server);
  openai = clientOf(server.url);
});
after(async () => {
  world.close();
  await world.server.finish();
});

const clientOf = (url: string, apiKey = "none") => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const user = (content: string) => ({ role: "user" as const, content });
const assistant = (content: string) => ({ role: "assistant" as const, content });
const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");

describe("models", () => {
  test("are the monikers that talk and the agents that run one", TIMEOUT, async () => {
    await world.api.put("/api/agents/helper/config", { moniker: "chat", params: { instructions: "Be kind." } });
    await world.api.put("/api/agents/counter/config", { moniker: "count", params: { to: 1 } });
    const ids = (await openai.models.list()).data.map(({ id }) => id);
    for (const id of ["chat", "echo", "helper", "slow-teller"]) assert.ok(ids.includes(id), id);
    for (const id of ["count", "joke", "counter"]) assert.ok(!ids.includes(id), id);
    assert.equal((await openai.models.retrieve("helper")).owned_by, "chat");
    await assert.rejects(openai.models.retrieve("nobody"), { status: 404 });
  });
});

describe("chat completions", () => {
  test("answer, plain and streamed, with usage", TIMEOUT, async () => {
    const plain = await openai.chat.completions.create({ model: "echo", messages: [user("hello")] });
    assert.deepEqual(
      [plain.object, plain.choices[0]?.message.content, plain.choices[0]?.finish_reason],
      ["chat.completion", "hello", "stop"],
    );
    assert.equal(plain.usage?.total_tokens, 0);
    const stream = await openai.chat.completions.create({
      model: "slow-teller",
      messages: [user("5 1")],
      stream: true,
      stream_options: { include_usage: true },
    });
    const pieces: string[] = [];
    let usage: unknown;
    for await (const chunk of stream) {
      const piece = chunk.choices[0]?.delta.content;
      if (piece) pieces.push(piece);
      usage = chunk.usage ?? usage;
    }
    assert.ok(pieces.length > 1, "it comes in pieces");
    assert.equal(pieces.join(""), words(5));
    assert.ok(usage);
  });

  test(
    "answer through the helper of the client, over several steps, with what it uses as reasoning",
    TIMEOUT,
    async () => {
      const runner = openai.chat.completions.stream({ model: "slow-teller", messages: [user("2 3")] });
      let reasoning = "";
      runner.on("chunk", (chunk) => {
        reasoning += (chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
      });
      const { choices } = await runner.finalChatCompletion();
      assert.equal(choices[0]?.message.content, [words(2), words(2), words(2)].join("\n\n"));
      assert.match(reasoning, /files\/read/);
    },
  );

  test("go on in one session where the request names its conversation, whichever way", TIMEOUT, async () => {
    const named = [
      { headers: { "X-OpenWebUI-Chat-Id": "chat one" } },
      { headers: { "X-Conversation-Id": "chat two" } },
      { body: { user: "ann", metadata: { conversation_id: "chat three" } } },
    ];
    for (const { headers = {}, body = {} } of named) {
      const ask = async (content: string, said: string[]) => {
        const messages = [...said.flatMap((text) => [user(text), assistant(text)]), user(content)];
        const { data, response } = await openai.chat.completions
          .create({ model: "echo", messages, ...body }, { headers })
          .withResponse();
        assert.equal(data.choices[0]?.message.content, content);
        return response.headers.get("x-everstep-session-id") ?? "";
      };
      const session_id = await ask("one", []);
      assert.equal(await ask("two", ["one"]), session_id);
      assert.deepEqual(
        (await world.api.steps(session_id)).map(({ text }) => text),
        ["one", "two"],
      );
      await world.control(session_id, "destroy");
      await world.status(session_id, "stopped");
      const next = await ask("three", ["one", "two"]);
      assert.notEqual(next, session_id, "a conversation whose session was ended goes on in a new one");
      const [step] = await world.api.steps(next);
      assert.equal(
        (step?.guidance[0] as { earlier?: unknown[] } | undefined)?.earlier?.length,
        4,
        "which is told what was said",
      );
    }
  });

  test("have a session each without a conversation, with instructions and what was said before", TIMEOUT, async () => {
    const messages = [{ role: "system" as const, content: "Be brief." }, user("a"), assistant("b"), user("c")];
    const ids: string[] = [];
    for (const model of ["chat", "chat", "helper"]) {
      const { response } = await openai.chat.completions.create({ model, messages }).withResponse();
      ids.push(response.headers.get("x-everstep-session-id") ?? "");
    }
    assert.equal(new Set(ids).size, 3);
    const [first, , helper] = await Promise.all(ids.map((id) => world.api.session(id)));
    assert.equal(first?.params["instructions"], "Be brief.");
    assert.equal(helper?.params["instructions"], "Be kind.", "an agent keeps its own");
    const remembered = ((first?.context["messages"] ?? []) as { role: string; text: string }[]).slice(0, 3);
    assert.deepEqual(
      remembered.map(({ role, text }) => [role, text]),
      [
        ["user", "a"],
        ["assistant", "b"],
        ["user", "c"],
      ],
    );
  });

  test("keep requests of front-ends for titles and tags out of the conversation", TIMEOUT, async () => {
    const prompts = [
      '### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\nJSON format: { "title": "…" }\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>',
      "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>",
      "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nhi",
      "Write a concise title for this conversation in the detected language. Title in 5 Words or Less. No Punctuation or Quotation.",
      "Please generate a concise, 5-word-or-less title for the conversation, using its same language, with no punctuation.",
    ];
    const headers = { "X-OpenWebUI-Chat-Id": "titled" };
    const ask = async (content: string) => {
      const { response } = await openai.chat.completions
        .create({ model: "echo", messages: [user(content)] }, { headers })
        .withResponse();
      return response.headers.get("x-everstep-session-id") ?? "";
    };
    const session_id = await ask("Write a concise title for my essay about this conversation.");
    for (const prompt of prompts) {
      const other = await ask(prompt);
      assert.notEqual(other, session_id, prompt);
      await world.status(other, "stopped");
    }
    assert.equal(await ask("another"), session_id);
    assert.equal((await world.api.steps(session_id)).length, 2);
  });

  test("go on when the client leaves, and take what is said meanwhile as guidance, and say so", TIMEOUT, async () => {
    const headers = { "X-Conversation-Id": "left alone" };
    const leaving = new AbortController();
    const { data: stream, response } = await openai.chat.completions
      .create({ model: "slow-teller", messages: [user("40 1")], stream: true }, { headers, signal: leaving.signal })
      .withResponse();
    const session_id = response.headers.get("x-everstep-session-id") ?? "";
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    leaving.abort();
    const guided = await openai.chat.completions
      .create({ model: "slow-teller", messages: [user("2 1")] }, { headers })
      .withResponse();
    assert.equal(guided.response.headers.get("x-everstep-session-id"), session_id);
    assert.equal(guided.response.headers.get("x-everstep-guidance"), "true");
    const message = guided.data.choices[0]?.message as { content: string; reasoning_content?: string };
    assert.match(message.reasoning_content ?? "", /sent to it as guidance/);
    assert.equal(message.content, words(2));
    assert.deepEqual(
      (await world.api.steps(session_id)).map(({ text }) => text),
      [words(40), words(2)],
    );
  });

  test("are refused as OpenAI does", TIMEOUT, async () => {
    const create = (body: object) =>
      openai.chat.completions.create(body as Parameters<typeof openai.chat.completions.create>[0]);
    await assert.rejects(create({ model: "nobody", messages: [user("x")] }), { status: 404, code: "model_not_found" });
    await assert.rejects(create({ model: "count", messages: [user("x")] }), { status: 404 });
    await assert.rejects(create({ model: "echo", messages: [] }), { status: 400, type: "invalid_request_error" });
    await assert.rejects(create({ model: "echo", messages: [assistant("x")] }), { status: 400 });
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
    await assert.rejects(create({ model: "echo", messages: [{ role: "user", content: [image] }] }), { status: 400 });
    const response = await fetch(`${world.server.url}/v1/nowhere`);
    assert.equal(response.status, 404);
    assert.ok(((await response.json()) as { error: { message: string } }).error.message);
  });
});

describe("responses", () => {
  test("answer, go on from one another, and are found again", TIMEOUT, async () => {
    const first = await openai.responses.create({ model: "echo", input: "one", metadata: { color: "blue" } });
    assert.deepEqual([first.status, first.output_text, first.metadata], ["completed", "one", { color: "blue" }]);
    const second = await openai.responses.create({
      model: "echo",
      input: [user("two")],
      previous_response_id: first.id,
    });
    assert.deepEqual([second.output_text, second.previous_response_id], ["two", first.id]);
    const branch = await openai.responses.create({ model: "echo", input: "other", previous_response_id: first.id });
    assert.equal(branch.output_text, "other");
    for (const response of [first, second, branch]) {
      const { output_text, status, output, id } = await openai.responses.retrieve(response.id);
      assert.deepEqual(
        [output_text, status, output, id],
        [response.output_text, "completed", response.output, response.id],
      );
    }
    await assert.rejects(openai.responses.retrieve("resp_nonsense"), { status: 404 });
    await assert.rejects(openai.responses.create({ model: "echo", input: "x", previous_response_id: "resp_x" }), {
      status: 404,
    });
  });

  test("stream through the helper of the client, the tools that a step uses as reasoning", TIMEOUT, async () => {
    const stream = openai.responses.stream({ model: "slow-teller", input: "3 2" });
    const types: string[] = [];
    let text = "";
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    const response = await stream.finalResponse();
    assert.equal(response.output_text, [words(3), words(3)].join("\n\n"));
    assert.equal(text, response.output_text);
    assert.deepEqual(
      response.output.map(({ type }) => type),
      ["message", "reasoning", "message"],
    );
    assert.deepEqual([types[0], types.at(-1)], ["response.created", "response.completed"]);
  });

  test("work in the background, can be followed from any event, and cancelled", TIMEOUT, async () => {
    const response = await openai.responses.create({ model: "slow-teller", input: "10 1", background: true });
    assert.equal(response.status, "in_progress");
    const all = [];
    for await (const event of await openai.responses.retrieve(response.id, { stream: true })) all.push(event);
    assert.equal(all.at(-1)?.type, "response.completed");
    for (const { sequence_number } of all) {
      let rest = "";
      for await (const event of await openai.responses.retrieve(response.id, {
        stream: true,
        starting_after: sequence_number,
      }))
        if (event.type === "response.output_text.delta") rest += event.delta;
      const heard = all
        .filter((event) => event.sequence_number <= sequence_number)
        .map((event) => (event.type === "response.output_text.delta" ? event.delta : ""))
        .join("");
      assert.equal(heard + rest, words(10), `after ${sequence_number}`);
    }
    const long = await openai.responses.create({ model: "slow-teller", input: "2000 1", background: true });
    assert.equal((await openai.responses.cancel(long.id)).status, "cancelled");
    assert.equal((await openai.responses.retrieve(long.id)).status, "cancelled");
    assert.equal((await openai.responses.cancel(response.id)).status, "completed", "one that is over stays as it is");
  });

  test("say so if they became guidance", TIMEOUT, async () => {
    const first = await openai.responses.create({ model: "slow-teller", input: "30 1", background: true });
    const second = await openai.responses.create({
      model: "slow-teller",
      input: "2 1",
      previous_response_id: first.id,
    });
    const [notice, message] = second.output;
    assert.equal(notice?.type, "reasoning");
    assert.equal(message?.type, "message");
    assert.equal(second.output_text, words(2));
    assert.equal((await openai.responses.retrieve(first.id)).output_text, words(30));
  });
});

describe("a server that is killed", () => {
  test("goes on with a response, and its stream goes on where it was cut off", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_MONIKERS: join(REPOSITORY, "test/clients/monikers") });
    const client = clientOf(server.url);
    const stream = await client.responses.create({
      model: "slow-teller",
      input: "40 2",
      background: true,
      stream: true,
    });
    let id = "";
    let last = -1;
    let text = "";
    const read = async (events: AsyncIterable<OpenAI.Responses.ResponseStreamEvent>, enough: () => boolean) => {
      for await (const event of events) {
        if (event.type === "response.created") id = event.response.id;
        if (event.type === "response.output_text.delta") text += event.delta;
        if (event.type === "response.completed") return event.response;
        last = event.sequence_number;
        if (enough()) return null;
      }
      return null;
    };
    await read(stream, () => text.includes("word12"));
    await server.kill();
    await server.start();
    const rest = await client.responses.retrieve(id, { stream: true, starting_after: last });
    const response = await read(rest, () => false);
    const whole = [words(40), words(40)].join("\n\n");
    assert.equal(text, whole, "each word once");
    assert.equal(response?.output_text, whole);
  });

  test("lets in who has its token as the key", TIMEOUT, async () => {
    await using server = await ServerProcess.start({ EVERSTEP_TOKEN: "sesame-of-v1" });
    assert.ok((await clientOf(server.url, "sesame-of-v1").models.list()).data.length > 0);
    await assert.rejects(clientOf(server.url, "wrong").models.list(), { status: 401, code: "invalid_api_key" });
  });
});
