import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { visitConsole, WITH_BROWSER } from "../console/console-fixture.ts";
import { REPOSITORY } from "../repository-files.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";
import { install, missingRegistry, nodeFromNpm, npm, type Packed, pack, shellWith } from "./npm.ts";

const run = promisify(execFile);
const TIMEOUT = { timeout: 180_000 };
const MEGABYTE = 1024 * 1024;

const MONIKER = `import { defineMoniker, z } from "everstep/moniker";

export default defineMoniker({
  name: "countdown",
  kind: "finite",
  description: "Counts down.",
  params: z.object({ from: z.int().min(1).default(2) }),
  step({ step, state }, { params }): { step: string; next_step: string; state: { left: number }; text: string; done: boolean } {
    const left = typeof state["left"] === "number" ? state["left"] - 1 : params.from;
    return { step, next_step: String(left), state: { left }, text: String(left), done: left === 0 };
  },
});
`;

/** Uses everything that the package exports; lines that must not compile are marked. */
const TYPES = `import { AgentApi } from "everstep/agent-api";
import { ClientError, EverstepClient } from "everstep/client";
import { defineMoniker, defineTool, type FrameOut, guidanceText, type StepContext, StepError, z } from "everstep/moniker";
import countdown from "./monikers/countdown.ts";

export const name: string = countdown.name;
export const length = defineTool({ description: "Counts.", input: z.object({ text: z.string() }), run: ({ text }) => text.length });
export const told = (guidance: Parameters<typeof guidanceText>[0]): string | null => guidanceText(guidance);
export const failure = new StepError("no_luck", "no luck", { retryable: true });
for await (const piece of new AgentApi("agent", "ws://127.0.0.1:4180/agent_ws/").sendMessage("hello")) piece.toUpperCase();
const client = new EverstepClient({ token: "t" });
for await (const event of client.events("s", { after: -1 })) if (event.type === "agent_step") event.data.iteration.toFixed();
export const status: "done" | string = (await client.request("GET /api/sessions/{session_id}", { path: { session_id: "s" } })).status;
export const isRefused = (error: unknown): boolean => error instanceof ClientError && error.status === 404;
// @ts-expect-error
await client.request("GET /api/sessions/{session_id}", {});
// @ts-expect-error
await client.request("GET /api/nothing");
declare const context: StepContext<{ from: number }>;
export const from: number = context.params.from;
export const aborted: boolean = context.signal.aborted;
// @ts-expect-error
new AgentApi("agent", 4180);
// @ts-expect-error
export const frame: FrameOut = 5;
// @ts-expect-error
context.tools.nothing;
// @ts-expect-error
context.llm?.nothing;
// @ts-expect-error
defineMoniker({ name: "x", kind: "endless", description: "x", params: z.object({}), step: ({ step }) => ({ step, next_step: "" }) });
`;

const registry = await missingRegistry();

describe("the package", { skip: process.env["EVERSTEP_TEST_ALL"] === "1" ? false : (registry ?? false) }, () => {
  let scratch: ScratchFolder;
  let packed: Packed;
  const projectOf = (major: number): string => join(scratch.path, `node-${major}`);
  before(async () => {
    scratch = await scratchFolder();
    packed = await pack(scratch.path);
  }, TIMEOUT);
  after(() => scratch[Symbol.asyncDispose]());

  test("has what was built and nothing else, in at most 4 MB", () => {
    const expected =
      /^(?:\.env\.example|bin\/everstep\.js|clients\/python\/everstep\.py|console\/dist\/.+|dist\/.+|(?:CHANGELOG|README)\.md|LICENSE|package\.json)$/;
    assert.deepEqual(
      packed.files.filter((path) => !expected.test(path)),
      [],
    );
    assert.deepEqual(
      packed.files.filter((path) => path.endsWith(".ts") && !/^dist\/types\/.+\.d\.ts$/.test(path)),
      [],
    );
    assert.ok(packed.size <= 4 * MEGABYTE, `it has ${packed.size} bytes`);
  });

  for (const major of [24, 26])
    describe(`installed with Node ${major} into an empty folder`, () => {
      let node: string;
      before(async () => {
        const isThis = process.version.startsWith(`v${major}.`);
        node = isThis ? process.execPath : await nodeFromNpm(major, join(scratch.path, `node-${major}-itself`));
        await install(projectOf(major), [packed.tarball], node);
      }, TIMEOUT);

      test("`npx everstep` serves, and a .ts moniker of the project runs", TIMEOUT, async (t) => {
        await writeProject(projectOf(major));
        const url = await serve(t, projectOf(major), node);
        const { session_id } = await create(url, "countdown");
        const { status, iteration } = await ended(`${url}/api/sessions/${session_id}`);
        assert.deepEqual([status, iteration], ["done", 2]);
      });

      test("`npx everstep demo` survives its own SIGKILL", TIMEOUT, async () => {
        const folder = join(scratch.path, `demo-${major}`);
        const args = ["everstep", "demo", "--fast", "--folder", folder];
        const { stdout } = await run("npx", args, { cwd: projectOf(major), env: shellWith(node) });
        assert.match(stdout, /4 calls in their own log, each made once/);
      });
    });

  test("the console of the package loads in a browser", { ...TIMEOUT, ...WITH_BROWSER }, async (t) => {
    const url = await serve(t, projectOf(24), process.execPath);
    const { page, open } = await visitConsole(t, url);
    await open("/");
    await page.getByText("counter").first().waitFor();
  });

  test("nothing is installed that reports on its users or that nobody needs", TIMEOUT, async () => {
    const listed = await npm(["ls", "--all", "--parseable"], projectOf(24));
    for (const name of ["@scarf/scarf", "openai", "@huggingface/transformers"])
      assert.ok(!listed.includes(`node_modules/${name}`), `${name} is installed`);
    assert.match(listed, /node_modules\/everstep$/m);
  });

  for (const [resolution, module] of [
    ["nodenext", "nodenext"],
    ["bundler", "esnext"],
  ] as const)
    test(`its types resolve with moduleResolution ${resolution} and without skipLibCheck`, TIMEOUT, async () => {
      const folder = projectOf(24);
      await writeProject(folder);
      await writeFile(join(folder, "types.ts"), TYPES);
      const options =
        `--noEmit --strict --skipLibCheck false --target es2022 --allowImportingTsExtensions --types`.split(" ");
      const compiler = join(REPOSITORY, "node_modules/typescript/bin/tsc");
      const args = [compiler, ...options, "", "--module", module, "--moduleResolution", resolution, "types.ts"];
      await run(process.execPath, args, { cwd: folder }).catch((error: { stdout: string }) =>
        assert.fail(error.stdout),
      );
    });

  test("`npx everstep init` makes a project that passes its test, type-checks and runs", TIMEOUT, async (t) => {
    const folder = join(scratch.path, "new-project");
    const [env, node] = [shellWith(process.execPath), process.execPath];
    await run("npx", ["everstep", "init", folder], { cwd: projectOf(24), env });
    await mkdir(join(folder, "node_modules/@types"), { recursive: true });
    // What `npm install` would install; the package is linked from where it is already installed.
    await symlink(join(projectOf(24), "node_modules/everstep"), join(folder, "node_modules/everstep"), "dir");
    await symlink(join(REPOSITORY, "node_modules/@types/node"), join(folder, "node_modules/@types/node"), "dir");
    await run(node, ["--test"], { cwd: folder, env });
    const compiler = join(REPOSITORY, "node_modules/typescript/bin/tsc");
    await run(node, [compiler], { cwd: folder, env }).catch((error: { stdout: string }) => assert.fail(error.stdout));
    const url = await serve(t, folder, node, [join(folder, "node_modules/everstep/bin/everstep.js")]);
    const { session_id } = await create(url, "countdown");
    assert.equal((await ended(`${url}/api/sessions/${session_id}`)).status, "done");
  });
});

async function writeProject(folder: string): Promise<void> {
  await mkdir(join(folder, "monikers"), { recursive: true });
  await writeFile(join(folder, "monikers/countdown.ts"), MONIKER);
}

/** Starts what `npx everstep` starts, until the test ends. Resolves with its address. */
async function serve(t: TestContext, folder: string, node: string, program?: string[]): Promise<string> {
  const env = { ...shellWith(node), EVERSTEP_PORT: "0", EVERSTEP_LOG_LEVEL: "warn" };
  const child = spawn(program ? node : "npx", program ?? ["everstep"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const exited = once(child, "exit");
  t.after(async () => {
    process.kill(-(child.pid as number), "SIGTERM");
    await exited;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/\S+?:\d+/.exec(line)?.[0];
    if (url !== undefined) return url;
  }
  throw new Error("everstep ended before it was up");
}

async function create(url: string, moniker: string): Promise<{ session_id: string }> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ agent_id: "counter", moniker });
  const answer = await fetch(`${url}/api/agents`, { method: "POST", headers, body });
  return (await answer.json()) as { session_id: string };
}

async function ended(url: string): Promise<{ status: string; iteration: number }> {
  for (;;) {
    const session = (await (await fetch(url)).json()) as { status: string; iteration: number };
    if (session.status !== "running") return session;
    await wait(20);
  }
}
