import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { StepError } from "../../src/monikers/moniker.ts";
import { HttpRemote } from "../../src/monikers/remote/http-remote.ts";
import { freePort } from "../free-port.ts";
import { stepContext } from "./step-context.ts";
import { counted, StubWorker } from "./stub-worker.ts";

const SECRET = `whsec_${Buffer.from("a secret of the tests, long enough").toString("base64")}`;
const FRAME = { step: "0", state: {} };
const TIMEOUT = { timeout: 60_000 };

/** The error of a step whose worker responds with these bytes. */
async function failureOf(answer: (response: ServerResponse) => void, signal?: AbortSignal) {
  await using worker = await StubWorker.start([], (_, response) => answer(response));
  const remote = new HttpRemote(worker.url, undefined);
  const context = stepContext(signal ? { signal } : {});
  try {
    await remote.run("any", FRAME, context);
  } catch (error) {
    assert.ok(error instanceof StepError, String(error));
    assert.ok(error.message.includes(worker.url), `the worker is named: ${error.message}`);
    return { code: error.code, retryable: error.retryable, message: error.message, emitted: context.emitted };
  } finally {
    await remote.stop();
  }
  return assert.fail("the step went well");
}

describe("a step over HTTP", () => {
  test("sends frame and context, and tells deltas, tools and usage as they come", TIMEOUT, async () => {
    await using worker = await StubWorker.start([], (request, response) => {
      response.write('{"delta":"a"}\n{"tool":"files/read"}\r\n\n{"us');
      setImmediate(() => response.end(`age":{"tokens":7,"cost_usd":0.5}}\n${counted(request)}`));
    });
    const remote = new HttpRemote(worker.url, undefined);
    const ids = { agent_id: "a", session_id: "s", conversation_id: "c", iteration: 4 };
    const context = stepContext({ params: { to: 3 }, ids, deadline: "2030-01-01T00:00:00.000Z" });
    const frame = await remote.run("counter", { step: "1", state: { n: 3 }, guidance: ["go"] }, context);
    assert.deepEqual(frame, { step: "1", next_step: "5", state: { n: 4 }, text: "4", done: false });
    assert.deepEqual(context.emitted, [
      { kind: "delta", text: "a" },
      { kind: "tool", name: "files/read" },
      { kind: "usage", tokens: 7, cost_usd: 0.5 },
    ]);
    assert.deepEqual(JSON.parse(worker.received[0]?.text ?? ""), {
      moniker: "counter",
      frame: { step: "1", state: { n: 3 }, guidance: ["go"] },
      context: { params: { to: 3 }, ids, attempt: { number: 1, after: null }, deadline: "2030-01-01T00:00:00.000Z" },
    });
    await remote.stop();
  });

  test("uses one connection for steps that follow each other", TIMEOUT, async () => {
    await using worker = await StubWorker.start([], (request, response) => void response.end(counted(request)));
    const remote = new HttpRemote(worker.url, undefined);
    for (let step = 0; step < 20; step++) await remote.run("any", FRAME, stepContext());
    assert.equal(worker.sockets.size, 1);
    await remote.stop();
  });

  test("takes a frame without a newline behind it", TIMEOUT, async () => {
    await using worker = await StubWorker.start([], (request, response) => void response.end(counted(request).trim()));
    const remote = new HttpRemote(worker.url, undefined);
    assert.equal((await remote.run("any", FRAME, stepContext())).text, "0");
    await remote.stop();
  });

  test(
    "is signed as the package standardwebhooks verifies it, with the same id for every attempt",
    TIMEOUT,
    async () => {
      await using worker = await StubWorker.start([], (request, response) => void response.end(counted(request)));
      const remote = new HttpRemote(worker.url, SECRET);
      await remote.describe(new AbortController().signal);
      const sessions = ["plain", "with space", "ёлка 100% 'x\"", "child.0.1"];
      for (const session_id of [...sessions, ...sessions])
        await remote.run(
          "any",
          { step: "ё\u{1f600}", state: {} },
          stepContext({ ids: { agent_id: "a", session_id, conversation_id: null, iteration: 3 } }),
        );
      const webhook = new Webhook(SECRET);
      const ids = worker.received.map(({ text, headers }) => {
        webhook.verify(text, headers as Record<string, string>, { jsonParse: false });
        return headers["webhook-id"] as string;
      });
      const [first, ...steps] = ids;
      assert.match(first ?? "", /^describe\//);
      assert.deepEqual(steps.slice(0, 4), steps.slice(4));
      assert.equal(steps[0], "plain/3");
      assert.equal(new Set(steps).size, 4);
      const forged = { ...worker.received[1]?.headers, "webhook-id": "other/3" } as unknown as Record<string, string>;
      assert.throws(() => webhook.verify(worker.received[1]?.text ?? "", forged));
      await remote.stop();
    },
  );

  test("that is only a rerun has an id of its own", TIMEOUT, async () => {
    await using worker = await StubWorker.start([], (request, response) => void response.end(counted(request)));
    const remote = new HttpRemote(worker.url, undefined);
    await remote.run("any", FRAME, stepContext({ is_rerun: true }));
    const [request] = worker.received;
    assert.notEqual(request?.headers["webhook-id"], "session/0");
    assert.equal((JSON.parse(request?.text ?? "") as { context: { is_rerun?: boolean } }).context.is_rerun, true);
    await remote.stop();
  });

  test("closes its connection when it is aborted", TIMEOUT, async () => {
    const closed = Promise.withResolvers<void>();
    const leaving = new AbortController();
    await using worker = await StubWorker.start([], (_, response) => {
      response.on("close", closed.resolve);
      response.write('{"delta":"begun"}\n');
      setImmediate(() => leaving.abort(new Error("interrupted")));
    });
    const remote = new HttpRemote(worker.url, undefined);
    await assert.rejects(remote.run("any", FRAME, stepContext({ signal: leaving.signal })));
    await closed.promise;
    await remote.stop();
  });

  test("that reports a problem fails as the problem says", TIMEOUT, async () => {
    const problem = { code: "page_gone", message: "it is not there", retryable: false };
    await using worker = await StubWorker.start([], (_, response) => void response.end(JSON.stringify({ problem })));
    const remote = new HttpRemote(worker.url, undefined);
    await assert.rejects(remote.run("any", FRAME, stepContext()), { name: "StepError", ...problem });
    await remote.stop();
  });
});

describe("a worker that is gone", () => {
  const GONE = { code: "remote_gone", retryable: true };

  test("before the step: it is an outage", TIMEOUT, async () => {
    const remote = new HttpRemote(`http://127.0.0.1:${await freePort()}`, undefined);
    await assert.rejects(remote.run("any", FRAME, stepContext()), { ...GONE, outage: true });
    await remote.stop();
  });

  test("and is back within a moment is no failure", TIMEOUT, async () => {
    const port = await freePort();
    const remote = new HttpRemote(`http://127.0.0.1:${port}`, undefined);
    const step = remote.run("any", FRAME, stepContext());
    await using _ = await StubWorker.start([], (request, response) => void response.end(counted(request)), port);
    assert.equal((await step).text, "0");
    await remote.stop();
  });

  for (const [how, cut] of [
    ["before it answers", (response) => response.destroy()],
    ["in the middle of a line", (response) => response.write('{"delta":"x"}\n{"fra', () => response.destroy())],
    ["with an answer that ends before the frame", (response) => response.end('{"delta":"x"}\n')],
    ["with an answer that ends in the middle of the frame", (response) => response.end('{"frame":{"step":"0",')],
    ["and something in front of it says so", (response) => response.writeHead(503).end()],
  ] satisfies [string, (response: ServerResponse) => void][])
    test(how, TIMEOUT, async () => {
      const { code, retryable } = await failureOf(cut);
      assert.deepEqual({ code, retryable }, GONE);
    });
});

describe("a worker that misbehaves is blamed by its name", () => {
  const valid = '{"frame":{"step":"0","next_step":"1","state":{},"done":false}}\n';
  const lines: [string, string | Buffer][] = [
    ["a line that is no JSON", "hello\n"],
    ["a line of another kind", '{"progress":1}\n'],
    ["a line that is no object", "[1]\n"],
    ["a delta that is no text", '{"delta":{"text":"a"}}\n'],
    ["a tool that is no text", '{"tool":7}\n'],
    ["usage of less than nothing", '{"usage":{"tokens":-1}}\n'],
    ["usage that is no number", '{"usage":{"tokens":"7"}}\n'],
    ["a frame without a state", '{"frame":{"step":"0","next_step":"1","done":false}}\n'],
    ["a frame whose state is a list", '{"frame":{"step":"0","next_step":"1","state":[],"done":false}}\n'],
    ["a frame that is null", '{"frame":null}\n'],
    ["a problem without a code", '{"problem":{"message":"x"}}\n'],
    ["a second frame", valid + valid],
    ["a delta after its frame", `${valid}{"delta":"x"}\n`],
    ["an unfinished line after its frame", `${valid}{"del`],
    [
      "bytes that are no UTF-8",
      Buffer.concat([Buffer.from('{"delta":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n')]),
    ],
  ];
  for (const [what, bytes] of lines)
    test(`for ${what}`, TIMEOUT, async () => {
      const { code, retryable } = await failureOf((response) => response.end(bytes));
      assert.deepEqual({ code, retryable }, { code: "remote_misbehaved", retryable: false });
    });

  for (const status of [301, 401, 404, 500])
    test(`for the status ${status}`, TIMEOUT, async () => {
      const { code, message } = await failureOf((response) =>
        response.writeHead(status, { location: "/other" }).end(valid),
      );
      assert.equal(code, "remote_misbehaved");
      assert.match(message, new RegExp(String(status)));
    });

  const endless = (bytes: Buffer | string) => (response: ServerResponse) => {
    const send = (): void => {
      while (!response.destroyed && response.write(bytes)) continue;
    };
    response.on("drain", send);
    send();
  };
  test("for a line without an end, in bounded memory", TIMEOUT, async () => {
    const { code, message } = await failureOf(endless(Buffer.alloc(1024 * 1024, "x")));
    assert.equal(code, "remote_misbehaved");
    assert.match(message, /a line of more than/);
  });

  test("for large lines without an end", TIMEOUT, async () => {
    const { code, message } = await failureOf(endless(`{"delta":"${"x".repeat(1024 * 1024)}"}\n`));
    assert.equal(code, "remote_misbehaved");
    assert.match(message, /bytes for one step/);
  });

  test("for deltas without an end", TIMEOUT, async () => {
    const { code, message } = await failureOf(endless('{"delta":"x"}\n'));
    assert.equal(code, "remote_misbehaved");
    assert.match(message, /lines for one step/);
  });

  test("for an answer that goes on after its frame", TIMEOUT, async () => {
    const { code } = await failureOf((response) => void response.write(valid));
    assert.equal(code, "remote_misbehaved");
  });

  test("for something that is not HTTP", TIMEOUT, async () => {
    const server = createServer((socket) => socket.on("error", () => {}).end("SSH-2.0-x\r\n")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const remote = new HttpRemote(`http://127.0.0.1:${(server.address() as { port: number }).port}`, undefined);
    await assert.rejects(remote.run("any", FRAME, stepContext()), { code: "remote_misbehaved" });
    server.close();
  });
});

describe("what a worker says it has", () => {
  const signal = new AbortController().signal;
  const good = { name: "counter", kind: "finite", description: "Counts.", params_schema: {}, version: "1" };

  test("is read, and one entry that is wrong does not hide the others", TIMEOUT, async () => {
    const wrong = [
      { ...good, name: "No Name" },
      { ...good, kind: "sometimes" },
      { ...good, name: "conditional", params_schema: { type: "object", if: {} } },
      { ...good, name: "optional", options: { max_steps: "many" } },
      7,
    ];
    await using worker = await StubWorker.start([good, ...wrong], () => {});
    const remote = new HttpRemote(worker.url, undefined);
    const { monikers, failures } = await remote.describe(signal);
    assert.deepEqual(
      monikers.map(({ name }) => name),
      ["counter"],
    );
    assert.deepEqual(
      failures.map(({ moniker }) => moniker),
      ["No Name", "counter", "conditional", "optional", null],
    );
    for (const { error } of failures) assert.ok(error.message.includes(worker.url), error.message);
    await remote.stop();
  });

  for (const text of ["", "[]", '{"monikers":{}}', "x".repeat(5 * 1024 * 1024)])
    test(`is refused where it is ${text.slice(0, 20) || "empty"}`, TIMEOUT, async () => {
      const server = createHttpServer((_, response) => response.end(text)).listen(0, "127.0.0.1");
      await once(server, "listening");
      const remote = new HttpRemote(`http://127.0.0.1:${(server.address() as { port: number }).port}`, undefined);
      await assert.rejects(remote.describe(signal), { code: "remote_misbehaved" });
      await remote.stop();
      server.closeAllConnections();
      server.close();
    });
});
