import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text as textOf } from "node:stream/consumers";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { agentUrl } from "./raw-client.ts";

const CLIENT = fileURLToPath(new URL("python_client.py", import.meta.url));
/** The first Python that has the module: the one on the path may not be the system's, for which packages are installed. */
const python = ["python3", "/usr/bin/python3"].find(
  (name) => spawnSync(name, ["-c", "import websockets"]).status === 0,
);
const hasPython = python !== undefined;
const missing = "python3 has no websockets: apt install python3-websockets";

describe("the one-chat socket for a client in Python", {
  skip: !hasPython && process.env["EVERSTEP_TEST_ALL"] !== "1" && missing,
}, () => {
  const server = sharedServer();

  test("answers it as it answers any other", TIMEOUT, async () => {
    assert.ok(hasPython, missing);
    const child = spawn(python ?? "python3", [CLIENT, agentUrl(server().url)], { stdio: ["pipe", "pipe", "inherit"] });
    const questions = ["write py.md: Ёлка 😀", "read py.md"];
    child.stdin.end(questions.map((question) => `${JSON.stringify(question)}\n`).join(""));
    const [said, [code]] = await Promise.all([textOf(child.stdout), once(child, "exit")]);
    assert.equal(code, 0);
    const { status, answers, error } = JSON.parse(said) as Record<string, unknown>;
    assert.match((status as { session_id: string }).session_id, /^default/);
    const end = { type: "event_end", tokens_used: 0, request_id: "py" };
    assert.deepEqual(answers, [
      { text: "Wrote py.md.", end },
      { text: "Ёлка 😀", end },
    ]);
    assert.deepEqual((error as { code: string }).code, "bad_message");
  });
});
