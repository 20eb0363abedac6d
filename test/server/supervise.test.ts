import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { freePort } from "../free-port.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { Api, read } from "./api.ts";
import { everstep } from "./command.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

const runtimesShape = z.looseObject({ runtimes: z.array(z.looseObject({ pid: z.int() })) });

const supervised = async () =>
  ServerProcess.start({ EVERSTEP_SUPERVISE: "1", EVERSTEP_PORT: String(await freePort()) });

/** The id of the serving process, once it differs from the last one. */
const servingPid = (server: ServerProcess, last?: number): Promise<number> =>
  eventually("it serves", async () => {
    const answer = await new Api(server.url).get("/api/system").catch(() => null);
    const pid = answer?.status === 200 ? read(answer, 200, runtimesShape).runtimes[0]?.pid : undefined;
    return pid !== last && pid;
  });

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("everstep serve --supervise", () => {
  test("starts it again when it crashes, later each time, and its sessions go on", TIMEOUT, async () => {
    await using server = await supervised();
    const api = new Api(server.url);
    const { session_id } = await api.create("count", { params: { to: 1_000_000, delay_ms: 5 } });
    const first = await servingPid(server);
    assert.notEqual(first, server.pid);
    const waits: number[] = [];
    let last = first;
    for (let crash = 0; crash < 2; crash += 1) {
      const killed = performance.now();
      process.kill(last, "SIGKILL");
      last = await servingPid(server, last);
      waits.push(performance.now() - killed);
    }
    assert.match(server.stderr, /ended with SIGKILL; restarting in 1 s\n/);
    assert.match(server.stderr, /ended with SIGKILL; restarting in 2 s\n/);
    assert.ok((waits[0] ?? 0) >= 1000 && (waits[1] ?? 0) >= 2000, waits.join());
    const { iteration } = await api.session(session_id);
    await eventually("a further step", async () => (await api.session(session_id)).iteration > iteration);
  });

  test("stops it in order at SIGTERM and does not start it again", TIMEOUT, async () => {
    await using server = await supervised();
    const pid = await servingPid(server);
    assert.equal((await server.stop()).code, 0);
    assert.ok(!isAlive(pid));
  });

  test("ends while it waits to start again", TIMEOUT, async () => {
    await using server = await supervised();
    process.kill(await servingPid(server), "SIGKILL");
    await eventually("it waits", async () => server.stderr.includes("restarting in"));
    const { code, ms } = await server.stop();
    assert.equal(code, 1);
    assert.ok(ms < 900, `it took ${ms} ms`);
  });

  test("takes it along when it is killed itself", TIMEOUT, async () => {
    await using server = await supervised();
    const pid = await servingPid(server);
    await server.kill();
    await eventually("the end", async () => !isAlive(pid));
    assert.match(server.stderr, /"msg":"stopping"/);
  });

  test("reports once what keeps it from starting at all", TIMEOUT, async () => {
    await using folder = await scratchFolder();
    const environment = {
      EVERSTEP_STORE: `lancedb:${folder.path}/data`,
      EVERSTEP_PORT: "0",
      EVERSTEP_MONIKERS: "nowhere",
    };
    const { code, stderr } = await everstep(["serve", "--supervise"], environment, folder.path);
    assert.equal(code, 1);
    assert.match(stderr, /^config_invalid: EVERSTEP_MONIKERS[^\n]*\n$/);
  });
});
