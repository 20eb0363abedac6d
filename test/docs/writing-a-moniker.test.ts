import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { Session, SessionOptions } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { assertTypes } from "./page-code.ts";
import { type PageWorld, pageWorld } from "./page-world.ts";

const TIMEOUT = { timeout: 180_000 };
const run = promisify(execFile);

describe("the code of docs/writing-a-moniker.md", () => {
  const world = pageWorld("writing-a-moniker.md");
  const create = (moniker: string, params: JsonObject, options?: SessionOptions): Promise<string> =>
    world().create(moniker, params, options);
  const tell = (session_id: string, guidance: JsonValue): Promise<void> => world().tell(session_id, guidance);
  const stepsOf = (session_id: string): Promise<Step[]> => world().steps(session_id);
  const awaited = (...wish: Parameters<PageWorld["awaited"]>): ReturnType<PageWorld["awaited"]> =>
    world().awaited(...wish);

  test("is all in files whose first line names them", () => {
    assert.deepEqual(
      world().blocks.map((block) => block.path),
      [
        "monikers/countdown.ts",
        "monikers/notebook.ts",
        "monikers/watch-page.ts",
        "monikers/tally.ts",
        "test/countdown.test.ts",
      ],
    );
  });

  test("has the right types", TIMEOUT, () => assertTypes(world().folder));

  test("is a moniker of ten lines that counts down and is done", TIMEOUT, async () => {
    const tenLines = world().blocks[0]?.code.split("export default ")[1]?.trimEnd().split("\n");
    assert.equal(tenLines?.length, 10);
    const session_id = await create("countdown", { from: 2 });
    const { session } = await awaited(session_id, ({ status }) => status === "done");
    assert.equal(session.result, "Liftoff!");
    assert.deepEqual(
      (await stepsOf(session_id)).map((step) => step.text),
      ["2 …", "1 …", "Liftoff!"],
    );
  });

  test("refuses parameters that the page's schema does not allow", async () => {
    const request = { action_type: "agent_create", agent_id: "reader", payload: { moniker: "countdown" } };
    const payload = { ...request.payload, params: { from: 0 } };
    const outcome = await world().runtime.queue.submit({ ...request, payload });
    assert.equal(outcome.kind === "invalid" && outcome.errors[0]?.path, "params.from");
  });

  test("is a reactive moniker that keeps guidance of any shape and shows its text as it grows", TIMEOUT, async () => {
    const session_id = await create("notebook", { title: "Groceries" });
    const hasTold = (count: number) => (session: Session) =>
      session.status === "waiting" && session.iteration === count - 1;
    await awaited(session_id, hasTold(1), () => tell(session_id, "bread"));
    await awaited(session_id, hasTold(2), () => tell(session_id, { text: "milk" }));
    const { shown } = await awaited(session_id, hasTold(3), () => tell(session_id, { eggs: 6 }));
    const last = (await stepsOf(session_id)).at(-1);
    assert.equal(last?.text, 'Groceries\n- bread\n- milk\n- {"eggs":6}\n');
    assert.equal(shown, last?.text);
    assert.deepEqual(last?.data, { count: 3 });
  });

  test("is a moniker that tries again where that can help, and not where it cannot", TIMEOUT, async () => {
    const answers = [
      [200, "one"],
      [503, "busy"],
      [200, "one"],
      [200, "two"],
      [404, "gone"],
    ] as const;
    let asked = 0;
    const server = createServer((_request, response) => {
      const [status, body] = answers[asked++] ?? [500, "asked too often"];
      response.writeHead(status).end(body);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      const options = { step_interval_ms: 1, retry: { max_attempts: 2, backoff_ms: 1 } };
      const session_id = await create("watch-page", { url }, options);
      const { session } = await awaited(session_id, ({ status }) => status === "error");
      assert.equal(session.last_error, `page_gone: ${url} is not there`);
      assert.equal(asked, answers.length);
      const steps = await stepsOf(session_id);
      assert.deepEqual(
        steps.map(({ status, step_token, text }) => [status, step_token, text]),
        [
          ["ok", "read", null],
          ["ok", "read", null],
          ["ok", "read", `${url} has changed`],
          ["error", "read", null],
        ],
      );
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test("is a moniker that brings the state of its older code up to date", TIMEOUT, async () => {
    const file = join(world().folder, "monikers/tally.ts");
    const today = await readFile(file, "utf8");
    const older = `import { defineMoniker, z } from "everstep/moniker";
export default defineMoniker({
  name: "tally", kind: "reactive", description: "Keeps words.", params: z.object({}),
  step: ({ step, state, guidance = [] }) =>
    ({ step, next_step: step, state: { words: [...((state["words"] as string[]) ?? []), ...guidance] }, done: false }),
});`;
    await writeFile(file, older);
    assert.deepEqual((await world().loader.reload()).failed, []);
    const session_id = await create("tally", {});
    await awaited(
      session_id,
      ({ iteration }) => iteration === 0,
      () => tell(session_id, "tea"),
    );
    await writeFile(file, today);
    assert.deepEqual((await world().loader.reload()).failed, []);
    await awaited(
      session_id,
      ({ iteration }) => iteration === 1,
      () => tell(session_id, "tea"),
    );
    const [first, second] = await stepsOf(session_id);
    assert.deepEqual([first?.state, second?.state], [{ words: ["tea"] }, { counts: { tea: 2 } }]);
    assert.notEqual(first?.moniker_version, second?.moniker_version);
  });

  test("is a test that passes", TIMEOUT, async () => {
    // The variable would make it part of this test run instead of a separate one.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const file = join(world().folder, "test/countdown.test.ts");
    const { stdout } = await run(process.execPath, ["--test", "--test-reporter=tap", file], { env });
    assert.match(stdout, /^# pass 2$/m);
    assert.match(stdout, /^# fail 0$/m);
  });
});
