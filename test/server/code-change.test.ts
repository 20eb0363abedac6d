import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { MonikerFiles, monikerFile } from "../monikers/moniker-files.ts";
import { repetitions } from "../repetitions.ts";
import { Api, read } from "./api.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

/** Sessions that run while their code changes. */
const SESSIONS = repetitions("EVERSTEP_TEST_CODE_CHANGE_SESSIONS", { few: 40, many: 1000 });
const STEPS = 60;
const GENERATIONS = 6;

const reportShape = z.object({
  monikers: z.array(z.object({ name: z.string(), version: z.string() })),
  failed: z.array(z.object({ error: z.string() })),
});

/** Writes its generation, and counts in its state how many times it was migrated. */
const marcher = monikerFile("marcher", "generation", {
  head: 'import { setTimeout as wait } from "node:timers/promises";\nimport { generation } from "./lib/generation.ts";',
  more: `async step({ step, state }: any) {
    await wait(5 + Math.random() * 20);
    const n = (state.n ?? 0) + 1;
    return { step, next_step: String(n), state: { ...state, n }, text: String(generation), done: n === ${STEPS} };
  },
  migrate: (state: any, from: string) => ({ ...state, from: [...(state.from ?? []), from] }),`,
});
const generationFile = (generation: number) => ({ "lib/generation.ts": `export const generation = ${generation};\n` });

test(`code that changes under ${SESSIONS} running sessions strands none and leaves no gap`, TIMEOUT, async () => {
  await using files = await MonikerFiles.with({ "marcher.ts": marcher, ...generationFile(1) });
  await using server = await ServerProcess.start({ EVERSTEP_MONIKERS: files.folder });
  const api = new Api(server.url);
  const reload = async () => read(await api.post("/api/monikers/reload"), 200, reportShape);
  const versions = [(await reload()).monikers[0]?.version ?? assert.fail("no version")];
  const ids = await Promise.all(Array.from({ length: SESSIONS }, async () => (await api.create("marcher")).session_id));
  const probe = ids.at(-1) ?? assert.fail("no session");
  for (let generation = 2; generation <= GENERATIONS; generation++) {
    const due = ((generation - 1) * STEPS) / GENERATIONS;
    await eventually(`iteration ${due}`, async () => (await api.session(probe)).iteration >= due);
    await files.write({ "lib/generation.ts": "export const generation = ;" });
    assert.equal((await reload()).failed.length, 1, "what cannot be loaded changes nothing");
    await files.write(generationFile(generation));
    versions.push((await reload()).monikers[0]?.version ?? assert.fail("no version"));
  }
  assert.equal(new Set(versions).size, GENERATIONS);
  const seen = new Set<string>();
  for (const session_id of ids) {
    await eventually("the end", async () => (await api.session(session_id)).status === "done");
    const steps = await api.steps(session_id);
    assert.deepEqual(
      steps.map(({ status, iteration, step_token, attempts }) => [status, iteration, step_token, attempts]),
      Array.from({ length: STEPS }, (_, iteration) => ["ok", iteration, String(iteration), 1]),
    );
    const ran = steps.map(({ moniker_version }) => versions.indexOf(moniker_version ?? ""));
    assert.deepEqual(
      ran,
      ran.toSorted((a, b) => a - b),
      "no step runs older code than the one before",
    );
    assert.deepEqual(
      steps.map(({ text }) => Number(text)),
      ran.map((version) => version + 1),
      "a step's version is that of the code that spoke",
    );
    const left = ran.filter((version, at) => at + 1 < ran.length && ran[at + 1] !== version);
    assert.deepEqual(
      steps.at(-1)?.state["from"] ?? [],
      left.map((version) => versions[version]),
    );
    for (const { moniker_version } of steps) seen.add(moniker_version ?? "");
  }
  assert.deepEqual([...seen].sort(), versions.toSorted());
  assert.deepEqual(
    server.loggedErrors.filter((line) => !line.includes("could not be loaded")),
    [],
  );
});
