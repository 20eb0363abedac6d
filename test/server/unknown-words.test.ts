import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { newSession } from "../../src/actions/new-session.ts";
import { newId } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { nearestWord } from "../../src/domain/nearest-word.ts";
import { count } from "../../src/monikers/builtin/count.ts";
import { openStore } from "../../src/store/open-store.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { storeHome } from "../store-home.ts";
import { Api, JSON_BODY, pathOf, problemOf, read, SHAPES } from "./api.ts";
import { commandFor } from "./command.ts";
import { ServerProcess, TIMEOUT } from "./server-fixture.ts";
import { sharedWorld, World } from "./world.ts";

const NO_OPTION = "max_step is not an option; did you mean max_steps?";
const NO_PARAM = "too is not a parameter of count; did you mean to?";

describe("the nearest word", () => {
  test("is the one with the fewest edits, and none where all are far", () => {
    const words = ["max_steps", "max_tokens", "model", "to", "tools"];
    const nearest = (word: string) => nearestWord(word, words);
    assert.deepEqual(
      ["max_step", "MAX_STEPS", "mxa_steps", "max_token", "modle", "tool", "too", "max", "zebra", ""].map(nearest),
      ["max_steps", "max_steps", "max_steps", "max_tokens", "model", "tools", "to", undefined, undefined, undefined],
    );
    assert.equal(nearestWord("x", []), undefined);
  });
});

describe("a word that a request does not have", () => {
  const world = sharedWorld();
  const run = commandFor(() => world().server.url);

  /** The reasons for which a request is refused, by field. */
  async function refusals(method: string, path: string, body: JsonObject): Promise<Record<string, string>> {
    const { errors = [] } = problemOf(await world().api.send(method, path, JSON.stringify(body), JSON_BODY), 400);
    return Object.fromEntries(errors.map(({ path: field, message }) => [field, message]));
  }

  test("is refused in the options of every request that takes some, with the word that is meant", TIMEOUT, async () => {
    const { session_id } = await world().api.create("count", { params: { to: 1 } });
    await world().status(session_id, "done");
    const options = { max_step: 3 };
    const creation = { moniker: "count", options };
    const requests: [string, string, JsonObject][] = [
      ["POST", "/api/agents", { agent_id: "a", ...creation }],
      ["POST", "/api/actions", { action_type: "agent_create", agent_id: "a", payload: creation }],
      ["PUT", pathOf("agents", "a", "config"), creation],
      ["POST", pathOf("sessions", session_id, "resume"), { options }],
      ["POST", pathOf("sessions", session_id, "fork"), { iteration: 0, options }],
    ];
    for (const [method, path, body] of requests)
      assert.deepEqual(await refusals(method, path, body), { options: NO_OPTION }, `${method} ${path}`);
    const schedule = { cron: "0 9 * * *", start: { agent_id: "a", moniker: "count", options } };
    assert.deepEqual(await refusals("POST", "/api/agents", { agent_id: "a", moniker: "schedule", params: schedule }), {
      "params.start.options": NO_OPTION,
    });
    problemOf(await world().api.get(pathOf("agents", "a")), 404);
  });

  test("is refused within an option too, and where none is near all are named", TIMEOUT, async () => {
    const options = { retry: { max_attempt: 2 }, model_settings: { temperatur: 1 }, tools: { runs: [] }, zebra: 1 };
    const { options: unknown = "", ...nested } = await refusals("POST", "/api/agents", {
      agent_id: "a",
      moniker: "count",
      options,
    });
    assert.deepEqual(nested, {
      "options.retry": "max_attempt is not a field of retry; did you mean max_attempts?",
      "options.model_settings": "temperatur is not a setting of the model; did you mean temperature?",
      "options.tools": "runs is not a list of tools; did you mean run?",
    });
    assert.match(unknown, /^zebra is not an option; use one of stop_on_done, max_steps, .*fallback_models$/);
  });

  test("is refused in params that the moniker does not ask for", TIMEOUT, async () => {
    const { session_id } = await world().api.create("count", { params: { to: 1 } });
    await world().status(session_id, "done");
    const creation = { moniker: "count", params: { too: 3 } };
    const requests: [string, string, JsonObject][] = [
      ["POST", "/api/agents", { agent_id: "a", ...creation }],
      ["PUT", pathOf("agents", "a", "config"), creation],
      ["POST", pathOf("sessions", session_id, "fork"), { iteration: 0, params: { too: 3 } }],
    ];
    for (const [method, path, body] of requests)
      assert.deepEqual(await refusals(method, path, body), { params: NO_PARAM }, `${method} ${path}`);
    const creationOfEcho = { agent_id: "a", moniker: "echo", params: { text: "hello" } };
    assert.deepEqual(await refusals("POST", "/api/agents", creationOfEcho), {
      params: "text is not a parameter of echo; there are none",
    });
  });

  test("is answered shortly however many there are", TIMEOUT, async () => {
    const options = Object.fromEntries(Array.from({ length: 10_000 }, (_, number) => [`word ${number}`, 1]));
    const { options: message = "" } = await refusals("POST", "/api/agents", {
      agent_id: "a",
      moniker: "count",
      options,
    });
    assert.match(message, /; and 9995 more$/);
    assert.ok(message.length < 3000, `${message.length} characters`);
  });

  test("is ignored in what a step starts, so that an older moniker still works", TIMEOUT, async () => {
    const action = {
      action_type: "agent_create",
      moniker: "count",
      params: { to: 1, too: 2 },
      options: { max_step: 3 },
    };
    const { session_id } = await world().api.create("script", { params: { frames: [{ actions: [action] }] } });
    await world().status(session_id, "done");
    const child = await world().status(`${session_id}.0.0`, "done");
    assert.deepEqual([child.params, child.options], [{ to: 1 }, { stop_on_done: true }]);
  });

  test("is an error in the command line", TIMEOUT, async () => {
    const option = await run("create", "count", "--option", "max_step=3");
    assert.deepEqual([option.code, option.stdout], [1, ""]);
    assert.ok(option.stderr.includes(NO_OPTION), option.stderr);
    const param = await run("create", "count", "--param", "too=3");
    assert.deepEqual([param.code, param.stdout], [1, ""]);
    assert.ok(param.stderr.includes(NO_PARAM), param.stderr);
  });

  test("is an error of the MCP tools that take options and params", TIMEOUT, async () => {
    const client = new Client({ name: "a test", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", world().server.url)));
    try {
      const { session_id } = await world().api.create("count", { params: { to: 1 } });
      const options = { max_step: 3 };
      const calls: [string, JsonObject, string][] = [
        ["start_agent", { moniker: "count", options }, NO_OPTION],
        ["start_agent", { moniker: "count", params: { too: 3 } }, NO_PARAM],
        ["resume", { session_id, options }, NO_OPTION],
        ["fork", { session_id, iteration: 0, options }, NO_OPTION],
      ];
      for (const [name, args, message] of calls) {
        const { isError, content } = await client.callTool({ name, arguments: args });
        assert.ok(isError, name);
        assert.ok(JSON.stringify(content).includes(message), JSON.stringify(content));
      }
    } finally {
      await client.close();
    }
  });
});

const OPEN = `import { defineMoniker, z } from "everstep/moniker";
export default defineMoniker({
  name: "open",
  kind: "finite",
  description: "Takes any params.",
  params: z.looseObject({ to: z.number().optional() }),
  step: (_frame, { params }) => ({ done: true, data: params }),
});
`;

test("a moniker whose schema is open takes any params", TIMEOUT, async () => {
  await using folder = await scratchFolder();
  const monikers = join(folder.path, "monikers");
  await mkdir(monikers);
  await writeFile(join(monikers, "open.ts"), OPEN);
  await using server = await ServerProcess.start({ EVERSTEP_MONIKERS: monikers });
  const api = new Api(server.url);
  const { session_id } = read(
    await api.post("/api/agents", { agent_id: "a", moniker: "open", params: { too: 3 } }),
    202,
    SHAPES.accepted,
  );
  assert.deepEqual((await api.session(session_id)).params, { too: 3 });
});

test("a session that was stored with words that are now unknown continues, and so does its fork", TIMEOUT, async () => {
  await using home = await storeHome();
  const session_id = newId();
  const store = await openStore(home.store);
  const made = newSession(
    { agent_id: "old", session_id, moniker: "count", params: { to: 2 }, options: { max_steps: 9 } },
    null,
    { catalog: new Map([["count", count]]) },
  );
  assert.equal(made.kind, "session");
  const { session } = made;
  const stored = {
    ...session,
    options: { ...session.options, max_step: 1, retry: { max_attempts: 2, backoff_ms: 1, delay: 1 } },
  };
  await store.commit({
    sessions: [{ kind: "create", session: stored, worker: null }],
    agent_configs: [
      {
        agent_id: "old",
        moniker: "count",
        params: { to: 1, too: 2 },
        options: { max_step: 1 } as JsonObject,
        description: null,
        updated_at: session.created_at,
      },
    ],
  });
  await store.close();
  await using server = await ServerProcess.start({ EVERSTEP_STORE: home.store });
  const world = await World.of(server);
  try {
    await world.status(session_id, "done");
    const fork = read(
      await world.api.post(pathOf("sessions", session_id, "fork"), { iteration: 0 }),
      202,
      SHAPES.accepted,
    );
    await world.status(fork.session_id, "done");
    const later = read(await world.api.post("/api/agents", { agent_id: "old" }), 202, SHAPES.accepted);
    assert.deepEqual((await world.status(later.session_id, "done")).params, { to: 1 });
  } finally {
    world.close();
  }
});
