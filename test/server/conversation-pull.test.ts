import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { newId } from "../../src/domain/ids.ts";
import type { Step } from "../../src/domain/step.ts";
import { randomFor } from "../store/random.ts";
import { Api, pathOf } from "./api.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

const MESSAGES = 120;
const KILLS = 3;

describe("a moniker that reads its conversation", () => {
  let server: ServerProcess;
  let api: Api;
  before(async () => {
    server = await ServerProcess.start({ EVERSTEP_MONIKERS: fileURLToPath(new URL("./monikers", import.meta.url)) });
    api = new Api(server.url);
  });
  after(async () => server.finish());

  const read = (steps: Step[]): string[] => steps.flatMap(({ data }) => data as string[]);
  const say = async (conversation_id: string, message_id: string) =>
    api.post(pathOf("conversations", conversation_id, "messages"), {
      user_id: "ann",
      text: "hello",
      message_id,
      to: [],
    });
  const start = async (conversation_id: string, params = {}) =>
    (await api.create("reader", { conversation_id, agent_id: `reader ${newId()}`, params })).session_id;
  /** The steps once they have read this many messages. */
  const stepsThatRead = async (session_id: string, count: number) =>
    eventually(`${count} messages read`, async () => {
      const steps = await api.steps(session_id);
      return read(steps).length >= count && steps;
    });

  test("is offered among the others", TIMEOUT, async () => {
    assert.match((await api.get("/api/monikers")).text, /"name":"reader"/);
  });

  test("sees what was said before it came and after, each message once and in order", TIMEOUT, async () => {
    const conversation_id = await api.conversation();
    const ids = Array.from({ length: 30 }, () => newId());
    for (const id of ids.slice(0, 10)) await say(conversation_id, id);
    const slowly = await start(conversation_id, { at_once: 3 });
    const quickly = await start(conversation_id);
    for (const id of ids.slice(10)) await say(conversation_id, id);
    assert.deepEqual(read(await stepsThatRead(slowly, 30)), ids);
    assert.deepEqual(read(await stepsThatRead(quickly, 30)), ids);
    const steps = await api.steps(slowly);
    assert.ok(steps.every(({ data }) => (data as string[]).length <= 3));
    assert.deepEqual(read(steps), ids, "and none of them later once more");
  });

  test("sees what others say, and not what it says itself", TIMEOUT, async () => {
    const conversation_id = await api.conversation();
    const [first, second] = [
      await start(conversation_id, { says: "I am one" }),
      await start(conversation_id, { says: "I am two" }),
    ];
    await say(conversation_id, newId());
    await Promise.all([stepsThatRead(first, 2), stepsThatRead(second, 2)]);
    const messages = await api.messages(conversation_id);
    assert.equal(messages.length, 3);
    for (const session_id of [first, second])
      assert.deepEqual(
        read(await api.steps(session_id)),
        messages.filter((message) => message.session_id !== session_id).map(({ message_id }) => message_id),
      );
  });

  test(`sees each message once also where the server is killed ${KILLS} times meanwhile`, TIMEOUT, async (context) => {
    const random = randomFor(context);
    const conversation_id = await api.conversation();
    const session_id = await start(conversation_id, { at_once: 7 });
    const ids = Array.from({ length: MESSAGES }, () => newId());
    /** Retries until there is a response, as a client that chooses its own ids may. */
    const insist = async (id: string) =>
      eventually(`message ${id} sent`, async () => {
        const answer = await say(conversation_id, id).catch(() => null);
        if (answer) assert.equal(answer.status, 201, answer.text);
        return answer !== null;
      });
    const talking = (async () => {
      for (const id of ids) await insist(id);
    })();
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const count = Math.floor((MESSAGES * kill) / (KILLS + 2)) + random.below(10);
      await stepsThatRead(session_id, count);
      await server.kill();
      await server.start();
    }
    await talking;
    const steps = await stepsThatRead(session_id, MESSAGES);
    assert.deepEqual(read(steps), ids);
    assert.deepEqual(
      steps.map(({ iteration }) => iteration),
      steps.map((_, index) => index),
    );
  });
});
