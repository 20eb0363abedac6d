import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { REPOSITORY } from "../repository-files.ts";
import { Api } from "../server/api.ts";
import { eventually, ServerProcess, TIMEOUT } from "../server/server-fixture.ts";
import { type Environment, FROM_SOURCES } from "../server/spawn-everstep.ts";
import { World } from "../server/world.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { OtlpReceiver } from "./otlp-receiver.ts";

const RECORDER = pathToFileURL(join(REPOSITORY, "test/tracing/record-packages.mjs")).href;
/** The longest that a stop may take, in milliseconds: three seconds for spans, and time for everything else. */
const STOP_MS = 10_000;

/** Other packages, such as the Prometheus client, load the small API package themselves, but nothing of the SDK. */
const isOfOthers = (line: string): boolean => /^@opentelemetry\/api for (?!everstep$)/.test(line);

/** The OpenTelemetry packages that a server loads for itself while it runs a session to its end. */
async function loadedPackages(environment: Environment): Promise<string[]> {
  await using folder = await scratchFolder();
  const LOADED_PACKAGES = join(folder.path, "packages");
  await using server = await ServerProcess.start({
    ...FROM_SOURCES,
    NODE_OPTIONS: `--import=${RECORDER}`,
    LOADED_PACKAGES,
    ...environment,
  });
  await countToEnd(server);
  const lines = (await readFile(LOADED_PACKAGES, "utf8")).split("\n");
  assert.ok(lines.includes("serve"), "what the server loads was not recorded");
  return [...new Set(lines)].filter((line) => line.startsWith("@") && !isOfOthers(line));
}

async function countToEnd(server: ServerProcess, to = 3): Promise<void> {
  const world = await World.of(server);
  const { session_id } = await world.api.create("count", { params: { to } });
  await world.status(session_id, "done");
  world.close();
}

const droppedSpans = async (server: ServerProcess): Promise<number> => {
  const { text } = await new Api(server.url).get("/metrics");
  return Number(/^everstep_spans_dropped_total (\d+)$/m.exec(text)?.[1]);
};

const warnings = ({ stderr }: ServerProcess): string[] =>
  stderr.split("\n").filter((line) => line.includes("spans were lost"));

describe("OpenTelemetry's SDK", TIMEOUT, () => {
  test("is not loaded without the address of a receiver", async () => {
    assert.deepEqual(await loadedPackages({}), []);
  });

  test("is not loaded where it is disabled", async () => {
    await using receiver = await OtlpReceiver.open();
    const disabled = { ...receiver.environment, OTEL_SDK_DISABLED: "true" };
    assert.deepEqual(await loadedPackages(disabled), []);
    assert.equal(receiver.bodies.length, 0);
  });

  test("is loaded with one", async () => {
    await using receiver = await OtlpReceiver.open();
    const loaded = await loadedPackages(receiver.environment);
    for (const name of ["api", "sdk-trace", "exporter-trace-otlp-proto"])
      assert.ok(loaded.includes(`@opentelemetry/${name} for everstep`), name);
  });
});

describe("a receiver of spans", TIMEOUT, () => {
  test("that is down harms nothing: sessions end, spans are counted as dropped, one line is logged, a stop is soon", async () => {
    const gone = await OtlpReceiver.open();
    const { environment } = gone;
    await gone[Symbol.asyncDispose]();
    await using server = await ServerProcess.start({ ...environment, OTEL_EXPORTER_OTLP_TIMEOUT: "200" });
    await countToEnd(server);
    await eventually("spans are dropped", async () => (await droppedSpans(server)) > 0);
    const before = await droppedSpans(server);
    await countToEnd(server);
    await eventually("more spans are dropped", async () => (await droppedSpans(server)) > before);
    assert.equal(warnings(server).length, 1);
    const { code, ms } = await server.stop();
    assert.equal(code, 0);
    assert.ok(ms < STOP_MS, `it took ${ms} ms`);
  });

  test("that never answers holds up neither sessions nor a stop", async () => {
    await using receiver = await OtlpReceiver.open();
    receiver.answer = () => {};
    await using server = await ServerProcess.start(receiver.environment);
    await countToEnd(server);
    await receiver.until("spans were sent", () => receiver.spans.length > 0);
    await countToEnd(server);
    const { code, ms } = await server.stop();
    assert.equal(code, 0);
    assert.ok(ms < STOP_MS, `it took ${ms} ms`);
  });

  test("that refuses spans gets later ones all the same", async () => {
    await using receiver = await OtlpReceiver.open();
    const { answer } = receiver;
    receiver.answer = (response) => void response.writeHead(400).end();
    await using server = await ServerProcess.start(receiver.environment);
    await countToEnd(server);
    await eventually("spans are dropped", async () => (await droppedSpans(server)) > 0);
    receiver.answer = answer;
    const before = receiver.spans.length;
    await countToEnd(server);
    await receiver.until("later spans", () => receiver.spans.length > before);
    assert.equal(warnings(server).length, 1);
  });

  test("gets what is still queued when the server is stopped", async () => {
    await using receiver = await OtlpReceiver.open();
    await using server = await ServerProcess.start({ ...receiver.environment, OTEL_BSP_SCHEDULE_DELAY: "3600000" });
    await countToEnd(server, 1);
    assert.equal(receiver.spans.length, 0);
    await server.stop();
    assert.equal(receiver.named("step count").length, 2);
    assert.equal(receiver.beginning("invoke_agent").length, 1);
  });

  test("gets the share of traces that is asked for", async () => {
    await using receiver = await OtlpReceiver.open();
    await using server = await ServerProcess.start({ ...receiver.environment, OTEL_TRACES_SAMPLER: "always_off" });
    await countToEnd(server, 1);
    await server.stop();
    assert.equal(receiver.spans.length, 0);
  });
});
