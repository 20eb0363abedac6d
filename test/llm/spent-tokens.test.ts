import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FORMATS, sharedLlmWorld, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import type { ModelCall } from "./model-call.ts";
import { failing, reply } from "./model-server.ts";

const COSTLY = { usage: { input: 1000, output: 500 } };
const BEGUN = '{"text": "Once upon';

for (const format of FORMATS)
  describe(`the tokens of a session (${format})`, () => {
    const server = sharedModelServer();
    const world = sharedLlmWorld(server, { format, destroy_grace_ms: 1 });
    const create = (options = {}) =>
      world().create("joke", {
        params: { subject: "tea" },
        options: { step_interval_ms: 0, max_steps: 1, ...options },
      });
    const retry = { max_attempts: 2, backoff_ms: 1 };
    /** The beginning of a reply, which has arrived when this resolves. */
    const begin = async (session_id: string, call: ModelCall) => {
      const text = world().nextText(session_id);
      call.begin(COSTLY.usage);
      call.say(BEGUN);
      await text;
    };

    test("are those that the provider reports, input and output", TIMEOUT, async () => {
      server().will(reply('{"text": "A long and costly joke about tea."}', COSTLY));
      const session_id = await create();
      assert.equal((await world().untilStatus(session_id, "stopped")).tokens_used, 1500);
      assert.equal((await world().steps(session_id))[0]?.tokens_used, 1500);
    });

    test("include those of a reply that was cut at its length limit, which is an error", TIMEOUT, async () => {
      server().will(reply('{"text": "A whole joke, it seems."}', { ...COSTLY, finish: "length" }));
      const session = await world().untilStatus(await create(), "error");
      assert.match(session.last_error ?? "", /^reply_too_long: /);
      assert.equal(session.tokens_used, 1500);
    });

    test("include those of an attempt that broke off, and none of one that was refused", TIMEOUT, async () => {
      const session_id = await create({ retry });
      const call = await server().next();
      await begin(session_id, call);
      server().will(reply('{"text": "Tea!"}', COSTLY));
      call.cut();
      const { tokens_used } = await world().untilStatus(session_id, "stopped");
      assert.ok(tokens_used > 1500, `${tokens_used}`);
      server().will(failing(500), reply('{"text": "Tea!"}', COSTLY));
      assert.equal((await world().untilStatus(await create({ retry }), "stopped")).tokens_used, 1500);
    });

    test("include those of a reply that could not be used", TIMEOUT, async () => {
      server().will(reply("no JSON", COSTLY), reply("none again", COSTLY));
      assert.equal((await world().untilStatus(await create({ retry }), "error")).tokens_used, 3000);
    });

    test("include those of an attempt that guidance cut short", TIMEOUT, async () => {
      const session_id = await create();
      const call = await server().next();
      await begin(session_id, call);
      server().will(reply('{"text": "Coffee!"}', COSTLY));
      await world().tell(session_id, "about coffee", "now");
      const { tokens_used } = await world().untilStatus(session_id, "stopped");
      assert.ok(tokens_used > 1500, `${tokens_used}`);
    });

    test("include those of a step that a destruction cut short", TIMEOUT, async () => {
      const session_id = await create();
      const call = await server().next();
      await begin(session_id, call);
      await world().do("agent_destroy", session_id);
      const { tokens_used, stop_reason } = await world().untilStatus(session_id, "stopped");
      assert.equal(stop_reason, "destroyed");
      assert.ok(tokens_used > 0, `${tokens_used}`);
    });

    test("include those of a step that the end of the process cut short", TIMEOUT, async () => {
      const session_id = await create();
      const call = await server().next();
      await begin(session_id, call);
      server().will(reply('{"text": "Tea!"}', COSTLY));
      await world().restartWithModel();
      const { tokens_used } = await world().untilStatus(session_id, "stopped");
      assert.ok(tokens_used > 1500, `${tokens_used}`);
    });
  });
