import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Conversation, Message } from "../../src/domain/conversation.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

/** Texts that some layer between a client and the disk cannot represent. */
const TEXTS = {
  "a zero character": "a\u0000b",
  "only a zero character": "\u0000",
  "the first half of a pair": "a\ud83d",
  "the second half of a pair": "\udd11b",
  "halves in the wrong order": "\udd11\ud83d",
  "a byte order mark": "\ufeffa",
  "the mark of a stored text": '\u0001"a"',
  "a replacement character": "a\ufffd",
  "a backslash before a zero": "\\u0000",
};

/** Numbers that are not JSON once they are parsed. */
const TOO_LARGE = ["1e999", "-1e999", "1e309", `1${"0".repeat(400)}`];

type Answer = {
  status: number;
  body: { [name: string]: unknown; session_id?: string; conversation_id?: string; action_id?: string };
};

function promises(environment: () => Promise<Record<string, string>>): void {
  let server: ServerProcess;
  before(async () => {
    server = await ServerProcess.start(await environment());
  });
  after(() => server[Symbol.asyncDispose]());

  async function send(path: string, body: string | Buffer): Promise<Answer> {
    const headers = { "content-type": "application/json" };
    const response = await fetch(server.url + path, { method: "POST", headers, body });
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  }
  const read = async <Row>(path: string): Promise<Row> => (await (await fetch(server.url + path)).json()) as Row;

  const checks = new Map<string, () => Promise<void>>();
  for (const [what, said] of Object.entries(TEXTS))
    test(`${what} is kept to the letter, wherever it is said`, TIMEOUT, async () => {
      const guidance = { text: said, [said]: [said] };
      const created = await send("/api/agents", JSON.stringify({ agent_id: "echo", moniker: "echo" }));
      const session_id = created.body.session_id ?? "";
      const metadata = { [said]: said };
      const action = { action_type: "agent_interrupt", session_id, payload: { guidance }, metadata };
      const { body } = await send("/api/actions", JSON.stringify(action));
      const talk = await send("/api/conversations", JSON.stringify({ title: said, tags: [said] }));
      const conversation_id = talk.body.conversation_id ?? "";
      const message = { user_id: "u", text: said, data: { [said]: said } };
      assert.equal((await send(`/api/conversations/${conversation_id}/messages`, JSON.stringify(message))).status, 201);
      const check = async (): Promise<void> => {
        const step = await eventually("the step", async () => {
          const { steps } = await read<{ steps: Step[] }>(`/api/agent-steps?session_id=${session_id}`);
          return steps[0];
        });
        assert.deepEqual([step.guidance, step.text], [[guidance], said]);
        const session = await read<Session>(`/api/sessions/${session_id}`);
        assert.equal(session.result, said);
        assert.deepEqual((await read<JsonObject>(`/api/actions/${body.action_id}`))["metadata"], metadata);
        const { title, tags } = await read<Conversation>(`/api/conversations/${conversation_id}`);
        assert.deepEqual([title, tags], [said, [said]]);
        const { messages } = await read<{ messages: Message[] }>(`/api/conversations/${conversation_id}/messages`);
        assert.deepEqual([messages[0]?.text, messages[0]?.data], [said, message.data]);
      };
      await check();
      checks.set(what, check);
    });

  test("and all of this holds after a restart", TIMEOUT, async (t) => {
    await server.stop();
    await server.start();
    assert.equal(checks.size, Object.keys(TEXTS).length);
    for (const [what, check] of checks) await t.test(what, check);
  });

  test("bytes that are not UTF-8 are refused, and nothing is written", TIMEOUT, async () => {
    const bad = [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xc0, 0x80], [0xe2, 0x82]];
    for (const bytes of bad) {
      const text = Buffer.concat([Buffer.from('{"title": "a'), Buffer.from(bytes), Buffer.from('"}')]);
      const { status, body } = await send("/api/conversations", text);
      assert.deepEqual([status, body["errors"]], [400, [{ path: "", message: "must be UTF-8" }]]);
    }
  });

  for (const number of TOO_LARGE)
    test(`${number.slice(0, 10)} is refused with its path`, TIMEOUT, async () => {
      const text = `{"agent_id": "a", "moniker": "count", "params": {"to": 1, "deep": [{"in": ${number}}]}}`;
      const { status, body } = await send("/api/agents", text);
      const errors = [{ path: "params.deep.0.in", message: "is a number out of range" }];
      assert.deepEqual([status, body["errors"]], [400, errors]);
    });
}

await onPostgres(() => {
  describe("what is said over HTTP on PostgreSQL", () => {
    let remove: (() => Promise<void>) | undefined;
    after(() => remove?.());
    promises(async () => {
      const home = await postgresHome();
      remove = home.remove;
      return { EVERSTEP_STORE: home.url };
    });
  });
});

describe("what is said over HTTP on the embedded store", () => promises(async () => ({})));
