import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { WebSocket } from "ws";
import { REPOSITORY } from "../repository-files.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { Api } from "./api.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";

/** Milliseconds from the signal to stop until the process has ended, on a busy machine. */
const QUICK_MS = 5000;

describe("everstep --help", () => {
  test("lists the commands, and each of them has a help of its own", TIMEOUT, async () => {
    const { code, stdout } = await everstep(["--help"]);
    assert.equal(code, 0);
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) .*$/gm)]
      .map(([, name]) => name ?? "")
      .filter((name) => name !== "help");
    const expectedCommands = [
      "create",
      "ps",
      "logs",
      "pause",
      "resume",
      "destroy",
      "interrupt",
      "search",
      "demo",
      "serve",
      "worker",
      "server",
    ];
    assert.deepEqual(
      expectedCommands.filter((name) => !commands.includes(name)),
      [],
    );
    const helps = await Promise.all(commands.map(async (name) => ({ name, ...(await everstep([name, "--help"])) })));
    for (const help of helps) {
      assert.deepEqual([help.code, help.stderr], [0, ""], help.name);
      assert.match(help.stdout, new RegExp(`^Usage: everstep ${help.name}\\b`));
    }
    for (const { name, stdout: page } of helps.filter(({ name: one }) =>
      ["create", "ps", "logs", "pause", "interrupt", "search"].includes(one),
    ))
      for (const option of ["--url", "--json", "--token"]) assert.ok(page.includes(option), `${name} ${option}`);
  });

  test("a call that is wrong ends with 2 and says what is", TIMEOUT, async () => {
    const calls: [args: string[], says: RegExp][] = [
      [["--nonsense"], /unknown option '--nonsense'/],
      [["nonsense"], /unknown command 'nonsense'/],
      [["pss"], /Did you mean ps/],
      [["logs"], /missing required argument 'session'/],
      [["interrupt", "x"], /missing required argument 'text'/],
      [["ps", "--nonsense"], /unknown option '--nonsense'/],
      [["logs", "x", "--tail", "few"], /whole number/],
    ];
    const ran = await Promise.all(calls.map(async ([args]) => everstep(args)));
    for (const [index, { code, stderr }] of ran.entries()) {
      assert.equal(code, 2, calls[index]?.[0].join(" "));
      assert.match(stderr, calls[index]?.[1] ?? /^$/);
    }
  });
});

describe("everstep worker and everstep server", () => {
  test("refuse the embedded store, and say what to do", TIMEOUT, async () => {
    for (const role of ["worker", "server"]) {
      const { code, stderr } = await everstep([role], { EVERSTEP_STORE: "lancedb:./somewhere" });
      assert.equal(code, 1);
      assert.match(
        stderr,
        new RegExp(
          `^config_invalid: everstep ${role} .*lancedb:./somewhere.*; run \`everstep serve\`, or set EVERSTEP_STORE=postgres://`,
        ),
      );
    }
  });
});

describe("everstep serve", () => {
  test("says where it is and the four lines that matter, and warns of nothing", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    assert.match(server.stdout, /^Everstep is up at http:\/\/127\.0\.0\.1:\d+ \(store lancedb:\S+\)\n/);
    for (const line of ["Console", "Data", "Model", "Yours"])
      assert.match(server.stdout, new RegExp(`^${line} {2,}\\S`, "m"), line);
    const [, console_url = ""] = /^Console +(\S+)/m.exec(server.stdout) ?? [];
    assert.equal((await fetch(console_url)).status, 200);
    assert.doesNotMatch(server.stderr, /Warning|Deprecat/i, "a first run warns of nothing");
  });

  test("stops at SIGTERM with 0 and soon, whatever is running, and continues at the next start", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const api = new Api(server.url);
    const { session_id } = await api.create("joke", { options: { step_interval_ms: 60_000 } });
    await api.create("count", { params: { to: 1_000_000, delay_ms: 5 } });
    using watcher = await Watcher.connect(server.url);
    await watcher.follow({ session_id, after_iteration: -1 });
    await watcher.until("the first joke", (events) => events.some(({ event }) => event === "agent_step"));
    const { code, signal, ms } = await server.stop();
    assert.deepEqual({ code, signal }, { code: 0, signal: null });
    assert.ok(ms < QUICK_MS, `it took ${ms.toFixed()} ms`);
    await server.start();
    assert.match(server.stdout, /, 2 sessions resumed\)\n/);
    const session = await api.session(session_id);
    assert.equal(session.status, "running");
    assert.deepEqual(server.loggedErrors, []);
  });

  test(
    "stops soon although clients keep connections, ask on and on, ask nothing, or do not listen",
    TIMEOUT,
    async () => {
      await using server = await ServerProcess.start();
      await using clients = new AsyncDisposableStack();
      const { hostname, port } = new URL(server.url);
      const silent = connect(Number(port), hostname);
      clients.defer(() => void silent.destroy());
      await once(silent, "connect");
      for (const path of ["/socket.io/?EIO=4&transport=websocket", "/agent_ws/"]) {
        const deaf = new WebSocket(server.url.replace("http", "ws") + path);
        clients.defer(() => deaf.terminate());
        await once(deaf, "message");
        deaf.pause();
      }
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      clients.defer(() => agent.destroy());
      let answers = 0;
      const ask = (): void => {
        get(`${server.url}/api/agents`, { agent }, (answer) => answer.resume().on("end", () => ++answers && ask())).on(
          "error",
          () => {},
        );
      };
      ask();
      ask();
      await eventually("it is busy", async () => answers > 10);
      const { code, ms } = await server.stop();
      assert.equal(code, 0);
      assert.ok(ms < QUICK_MS, `it took ${ms.toFixed()} ms`);
    },
  );

  test("stops at SIGINT too, and while it has nothing to do", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    const { code, ms } = await server.stop("SIGINT");
    assert.equal(code, 0);
    assert.ok(ms < QUICK_MS, `it took ${ms.toFixed()} ms`);
  });

  test("refuses invalid settings with 1 and one line that says what to do", TIMEOUT, async () => {
    await using server = await ServerProcess.start();
    await using folder = await scratchFolder();
    const monikers = join(folder.path, "mine");
    await mkdir(monikers);
    await writeFile(join(monikers, "broken.ts"), "export default { name: 'broken' };");
    const other = { EVERSTEP_STORE: `lancedb:${join(folder.path, "data")}`, EVERSTEP_PORT: "0" };
    const { port } = new URL(server.url);
    const refusals: [environment: Record<string, string>, says: RegExp][] = [
      [{ ...other, EVERSTEP_STORE: `lancedb:${join(server.folder, "data")}` }, /^store_locked: .*postgres:\/\//],
      [{ ...other, EVERSTEP_PORT: port }, /^address_unavailable: .*set EVERSTEP_PORT/],
      [{ ...other, EVERSTEP_PORT: "many" }, /^config_invalid: EVERSTEP_PORT/],
      [{ ...other, EVERSTEP_STORE: "mysql://user:secret@host/db" }, /^config_invalid: EVERSTEP_STORE=mysql:…/],
      [{ ...other, EVERSTEP_MONIKERS: monikers }, /^moniker_invalid: .*broken\.ts/],
      [{ ...other, EVERSTEP_MONIKERS: join(folder.path, "nowhere") }, /^config_invalid: EVERSTEP_MONIKERS/],
    ];
    for (const [environment, says] of refusals) {
      const { code, stderr } = await everstep(["serve"], environment, folder.path);
      assert.equal(code, 1, stderr);
      const lines = stderr
        .trimEnd()
        .split("\n")
        .filter((line) => !line.startsWith('{"level":30'));
      assert.match(lines[0] ?? "", says);
      assert.equal(lines.length, 1, stderr);
      assert.doesNotMatch(stderr, /secret/);
    }
  });
});

describe("bin/everstep.js", () => {
  const older = olderNode();
  const missing = "no Node before 24 is on the PATH; install one to run this";
  if (older === null && process.env["EVERSTEP_TEST_ALL"] === "1")
    test("started by an older Node", () => assert.fail(missing));
  else
    test("started by an older Node hands over to the right one, and passes SIGTERM on", {
      ...TIMEOUT,
      skip: older === null && missing,
    }, async () => {
      await using folder = await scratchFolder();
      const environment = {
        PATH: process.env["PATH"] ?? "",
        EVERSTEP_STORE: `lancedb:${join(folder.path, "data")}`,
        EVERSTEP_PORT: "0",
      };
      const child = spawn(older ?? "", [join(REPOSITORY, "bin/everstep.js"), "serve"], {
        env: environment,
        stdio: ["ignore", "pipe", "ignore"],
      });
      let url = "";
      for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
        url = /Everstep is up at (\S+)/.exec(String(chunk))?.[1] ?? url;
        if (url) break;
      }
      assert.equal((await new Api(url).get("/health")).status, 200);
      const rest = text(child.stdout);
      child.kill("SIGTERM");
      const [code] = (await once(child, "exit")) as [number];
      await rest;
      assert.equal(code, 0);
      await assert.rejects(new Api(url).get("/health"), "nothing is left behind");
    });
});

/** The oldest Node on the PATH that cannot run TypeScript by itself. */
function olderNode(): string | null {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/bin", "/usr/local/bin"];
  for (const node of folders.map((folder) => join(folder, "node"))) {
    try {
      if (Number(/^v(\d+)/.exec(execFileSync(node, ["--version"], { encoding: "utf8" }))?.[1]) < 24) return node;
    } catch {
      // No Node there.
    }
  }
  return null;
}
