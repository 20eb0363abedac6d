import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { after, before, describe, test } from "node:test";
import { repetitions } from "../repetitions.ts";
import { randomFor } from "../store/random.ts";
import { Api, pathOf, SHAPES } from "./api.ts";
import {
  AGENT,
  bodyFor,
  CONVERSATION,
  LISTS,
  MESSAGE,
  queryFor,
  ROUTES,
  randomPath,
  SESSION,
} from "./fuzz-requests.ts";
import { eventually, ServerProcess } from "./server-fixture.ts";

const BODIES = repetitions("EVERSTEP_FUZZ_BODIES", { few: 150, many: 2000 });
const QUERIES = repetitions("EVERSTEP_FUZZ_QUERIES", { few: 30, many: 200 });
const AT_ONCE = 32;
const TIMEOUT = { timeout: 180_000 };

type Sent = { status: number; type: string; text: string };

describe("whatever is sent,", () => {
  let server: ServerProcess;
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  before(async () => {
    server = await ServerProcess.start();
    const api = new Api(server.url);
    await api.conversation({ conversation_id: CONVERSATION });
    await api.create("echo", { agent_id: AGENT, session_id: SESSION, conversation_id: CONVERSATION });
    await api.post(pathOf("conversations", CONVERSATION, "messages"), {
      user_id: "ann",
      text: "hello",
      message_id: MESSAGE,
    });
    await eventually("an answer", async () => (await api.messages(CONVERSATION)).length === 2);
    // A clean stop archives the rows, so that reads use both halves of the store.
    await server.stop();
    await server.start();
    await api.post(pathOf("sessions", SESSION, "interrupt"), { guidance: "hello again" });
  });
  after(async () => {
    agent.destroy();
    await server.finish();
  });

  const send = (method: string, path: string, body?: string): Promise<Sent> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(server.url);
      const headers =
        body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      const sent = request({ agent, hostname, port, method, path, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            type: response.headers["content-type"] ?? "",
            text: Buffer.concat(chunks).toString(),
          }),
        );
      });
      sent.on("error", reject);
      sent.end(body);
    });

  /** Sends many requests at once, and checks that each response is a success or a client error. */
  const storm = async (count: number, next: () => [method: string, path: string, body?: string]) => {
    const statuses = new Map<number, number>();
    let left = count;
    const work = async () => {
      for (; left > 0; left -= 1) {
        const [method, path, body] = next();
        const { status, type, text } = await send(method, path, body);
        const what = `${method} ${path} ${body?.slice(0, 2000) ?? ""} was answered ${status}: ${text.slice(0, 500)}`;
        assert.ok(status < 500, what);
        if (status >= 400)
          assert.ok(
            type.startsWith("application/problem+json") && SHAPES.problem.safeParse(JSON.parse(text)).success,
            what,
          );
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const workers = Array.from({ length: AT_ONCE }, work);
    await Promise.all(workers).finally(() => (left = 0));
    return statuses;
  };
  for (const { method, path, body } of ROUTES) {
    test(
      `${method} ${decodeURIComponent(path)} answers ${BODIES} random bodies with good or with a client's problem`,
      TIMEOUT,
      async (context) => {
        const random = randomFor(context);
        const statuses = await storm(BODIES, () => [method, path, bodyFor(random, body)]);
        context.diagnostic([...statuses].map(([status, count]) => `${status}: ${count}`).join(", "));
        assert.ok(statuses.has(400), "some were wrong");
      },
    );
  }

  test(`${LISTS.length} routes that read answer ${QUERIES} random queries each`, TIMEOUT, async (context) => {
    const random = randomFor(context);
    const statuses = await storm(QUERIES * LISTS.length, () => ["GET", `${random.pick(LISTS)}?${queryFor(random)}`]);
    context.diagnostic([...statuses].map(([status, count]) => `${status}: ${count}`).join(", "));
    assert.ok((statuses.get(200) ?? 0) > QUERIES, "some were right");
  });

  test("POST /reset, which needs no body, takes any", TIMEOUT, async (context) => {
    const random = randomFor(context);
    await storm(100, () => ["POST", "/reset", bodyFor(random, {})]);
  });

  test("paths of random parts are answered", TIMEOUT, async (context) => {
    const random = randomFor(context);
    await storm(QUERIES * 4, () => [random.pick(["GET", "POST", "DELETE", "PUT", "PATCH"]), randomPath(random)]);
  });

  test("and afterwards every action came to its end", TIMEOUT, async () => {
    // A message goes to every session in the conversation, so there may be very many actions.
    for (let least = Number.POSITIVE_INFINITY; least > 0; ) {
      least = await eventually("a shorter queue", async () => {
        const { queue_depth } = JSON.parse((await send("GET", "/health")).text) as { queue_depth: number };
        return queue_depth < least && queue_depth;
      });
    }
    const api = new Api(server.url);
    const { session_id } = await api.create("count", { params: { to: 3 } });
    await eventually("a new session's end", async () => (await api.session(session_id)).status === "done");
  });
});
