import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FORMATS, sharedLlmWorld, sharedModelServer, TIMEOUT } from "./llm-fixture.ts";
import type { ModelCall } from "./model-call.ts";
import { reply } from "./model-server.ts";

const GRACE_MS = 20;
/** A call that waits for the response headers, and one whose text has begun. */
const STAGES: [name: string, begin: (call: ModelCall) => void][] = [
  ["before the model's first word", () => {}],
  ["within the model's text", (call) => call.say('{"text": "Once upon')],
];

for (const format of FORMATS)
  describe(`a step in a model's hands (${format})`, () => {
    const server = sharedModelServer();
    const world = sharedLlmWorld(server, { format, destroy_grace_ms: GRACE_MS });
    const create = (options = {}) =>
      world().create("joke", { params: { subject: "tea" }, options: { step_interval_ms: 0, ...options } });

    for (const [stage, begin] of STAGES) {
      test(`that is interrupted ${stage} leaves the model and runs again with the guidance`, TIMEOUT, async () => {
        const session_id = await create({ max_steps: 1 });
        const call = await server().next();
        begin(call);
        const action_id = await world().tell(session_id, "about coffee", "now");
        await call.left;
        const again = await server().next();
        assert.match(again.said("user"), /"guidance":\["about coffee"\]/);
        await again.reply('{"text": "Coffee!"}');
        await world().untilStatus(session_id, "stopped");
        assert.deepEqual(
          (await world().steps(session_id)).map(({ text }) => text),
          ["Coffee!"],
        );
        assert.equal((await world().ended(action_id)).receipt, "consumed");
      });

      test(`that is destroyed ${stage} leaves the model after its grace`, TIMEOUT, async () => {
        const session_id = await create();
        const call = await server().next();
        begin(call);
        await world().do("agent_destroy", session_id);
        await call.left;
        const session = await world().untilStatus(session_id, "stopped");
        assert.deepEqual([session.stop_reason, session.iteration], ["destroyed", -1]);
      });

      test(`that is paused ${stage} is finished and kept, and no further call is made`, TIMEOUT, async () => {
        const session_id = await create();
        const call = await server().next();
        begin(call);
        await world().do("agent_pause", session_id);
        await world().meanwhile();
        assert.equal(call.isOver, false, "the model goes on");
        await (stage === STAGES[0]?.[0] ? call.reply('{"text": "Once upon a time."}') : finish(call));
        const session = await world().untilIteration(session_id, 0);
        assert.deepEqual([session.status, session.result], ["paused", "Once upon a time."]);
        await world().meanwhile();
        assert.equal(server().calls.length, 1);
      });
    }

    test("that takes too long leaves the model and is tried again", TIMEOUT, async () => {
      const session_id = await create({ max_steps: 1, step_timeout_s: 0.2, retry: { max_attempts: 2, backoff_ms: 1 } });
      const call = await server().next();
      server().will(reply('{"text": "In time."}'));
      await call.left;
      await world().untilStatus(session_id, "stopped");
      assert.deepEqual(
        (await world().steps(session_id)).map(({ text }) => text),
        ["In time."],
      );
    });

    test("leaves the model when the runtime stops, and runs again after the restart", TIMEOUT, async () => {
      const session_id = await create({ max_steps: 1 });
      const call = await server().next();
      call.say('{"text": "Half of');
      server().will(reply('{"text": "The whole."}'));
      await world().restartWithModel();
      await call.left;
      await world().untilStatus(session_id, "stopped");
      assert.deepEqual(
        (await world().steps(session_id)).map(({ text }) => text),
        ["The whole."],
      );
    });
  });

function finish(call: ModelCall): void {
  call.say(' a time."}');
  call.end();
}
