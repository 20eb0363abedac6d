import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { catalogue } from "../../src/surfaces/matrix/catalogue/catalogue.ts";
import { agentUrl } from "../agent-ws/raw-client.ts";
import { SeedAgent } from "../agent-ws/seed-agent.ts";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { BotParts } from "./bot-parts.ts";

/** Commands that only a runtime can carry out. */
const RUNTIME_COMMANDS = [
  "agents",
  "inbox",
  "start count to=3",
  "watch x",
  "guide x y",
  "answer x y",
  "fork x 1 y",
  "pause x",
  "resume x",
  "destroy x",
  "cost",
];

describe("the bot with an agent that knows only the smallest protocol", () => {
  test("carries out every command, or says why it cannot", TIMEOUT, async () => {
    await using agent = await SeedAgent.open();
    await using bot = await BotParts.open(agent);
    const claims: [says: string, answer: RegExp][] = [
      ["Hello", /^You said: Hello$/],
      ["!context", /not saved yet[\s\S]*Loaded:\*\* none[\s\S]*Agent:\*\* ready[\s\S]*7 for the last answer/],
      ["!save tea", /^Saved as `tea`\.$/],
      ["!save cake", /^Saved as `cake`\.$/],
      ["!save tea", /Overwrite it\?/],
      ["!yes", /^Saved as `tea`\.$/],
      ["!load", /1\. `tea`.*\n2\. `cake`/],
      ["!more", /No list with more pages/],
      ["2", /^Loaded `cake`\.$/],
      ["!load +tea", /^Loaded `tea`\.$/],
      ["!context", /saved last as `tea`[\s\S]*Loaded:\*\* `cake`, `tea`[\s\S]*42 in total/],
      ["!load tea", /^Loaded `tea`\.$/],
      ["!context", /Loaded:\*\* `tea`\n/],
      ["!reset", /Reset it\?/],
      ["!no", /nothing was reset/],
      ["!reset", /Reset it\?/],
      ["!save plum", /Saved as `plum`[\s\S]*no reset endpoint/],
      ["!reset", /Reset it\?/],
      ["!yes", /no reset endpoint[\s\S]*Nothing was lost/],
      ["!context", /Loaded:\*\* `tea`\n/],
      ["fail", /^The agent could not answer: out of order$/],
      ["After that", /^You said: After that$/],
      ["!stop", /No answer is under way/],
      ["!cancel", /Nothing is waiting/],
      ["!settings streaming off", /Streaming:\*\* off/],
      ["!help", /`!save \[name\]`/],
      ["!hepl", /Did you mean `!help`/],
      ["!new Garden", /could not be created/],
      ...RUNTIME_COMMANDS.map((command): [string, RegExp] => [
        `!${command}`,
        /the agent behind this bot has no runtime/,
      ]),
      ["!watch off", /Nothing is watched here/],
      ["!yes", /Nothing is waiting/],
    ];
    for (const [says, answer] of claims) assert.match(await bot.ask(says), answer, says);
    const commands = new Set(claims.flatMap(([says]) => /^!(\w+)/.exec(says)?.[1] ?? []));
    assert.deepEqual(
      Object.keys(catalogue("en").help.commands).filter((name) => !commands.has(name)),
      [],
      "every command was given",
    );
    assert.ok(agent.requests.includes("POST /reset"));
    assert.equal(
      agent.asked.some((text) => text.startsWith("!")),
      false,
      "no command cost a question",
    );
  });

  test("stops an answer that does not end, and says that the agent is busy with it", TIMEOUT, async () => {
    await using agent = await SeedAgent.open();
    await using bot = await BotParts.open(agent);
    bot.hears("a tale without end");
    while (bot.state.jobs.open()[0]?.state !== "begun") await new Promise((resolve) => setTimeout(resolve, 10));
    bot.hears("!stop");
    await bot.settled();
    assert.match(bot.state.outbox.open().at(-1)?.content.body ?? "", /\*\(stopped\)\*$/);
    assert.match(await bot.ask("!context"), /Agent:\*\* busy with an answer/);
    assert.equal(agent.asked.length, 1);
  });
});

describe("what !context says of a real agent", () => {
  const server = sharedServer();
  const places = () => ({ ws_url: agentUrl(server().url), base_url: server().url });
  const post = async (path: string, body: object = {}): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${server().url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    assert.ok(response.ok, `${path}: ${response.status}`);
  };
  const until = async (bot: BotParts, expected: RegExp): Promise<void> => {
    let said = "";
    for (const end = Date.now() + 20_000; Date.now() < end && !expected.test(said); ) said = await bot.ask("!context");
    assert.match(said, expected);
  };

  test("is what the runtime knows, also of what others did", TIMEOUT, async () => {
    await using bot = await BotParts.open(places());
    await bot.ask("Hello");
    await bot.ask("!save mine");
    await bot.ask("!load mine");
    assert.match(await bot.ask("!context"), /saved last as `mine`\n\*\*Loaded:\*\* `mine`\n\*\*Agent:\*\* ready/);
    const { session_id } = bot.platform;
    await post(`/api/sessions/${session_id}/pause`);
    await until(bot, /Agent:\*\* paused/);
    assert.match(await bot.ask("Are you there?"), /Are you there/);
    await until(bot, /Agent:\*\* ready/);
    await post("/reset");
    await until(bot, /not saved yet\n\*\*Loaded:\*\* none\n\*\*Agent:\*\* ready\n\*\*Tokens:\*\* 0 for the last/);
  });

  test("!destroy looks for the session before it asks, and asks with its whole id", TIMEOUT, async () => {
    await using bot = await BotParts.open(places());
    assert.match(await bot.ask("!destroy nowhere"), /^There is no session `nowhere`/);
    assert.match(await bot.ask("!yes"), /Nothing is waiting/);
    await post("/api/agents", { agent_id: "doomed", moniker: "chat", session_id: "doomed-1" });
    await bot.ask("!reset");
    const question = await bot.ask("!destroy doomed");
    assert.match(question, /whether to reset, no longer applies[\s\S]*Session `doomed-1` will end for good\. End it\?/);
    assert.match(await bot.ask("!yes"), /`doomed-1` is ended/);
    await (async () => {
      while (!/is stopped/.test(await bot.ask("!destroy doomed-1"))) await bot.ask("!no");
    })();
    assert.match(await bot.ask("!yes"), /Nothing is waiting/);
  });
});
