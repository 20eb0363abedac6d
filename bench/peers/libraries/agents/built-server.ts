import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { AgentWork } from "../../agent/agent-peer.ts";
import type { Place } from "../../peer.ts";

const UP_WITHIN_MS = 30_000;

/** The Nitro server built from an app of ../apps, with its data in the contender's folder. Resolves with its address. */
export async function startBuilt(app: string, { folder, restate }: Place, { model_url }: AgentWork): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const program = fileURLToPath(new URL(`../apps/${app}/.output/server/index.mjs`, import.meta.url));
  const port = String(restate.service_port);
  const env = {
    ...process.env,
    HOST: "127.0.0.1",
    PORT: port,
    NODE_ENV: "production",
    BENCH_MODEL_URL: model_url,
    // An interrupted step is continued after this lease: 860 s by default, and 1 is the minimum.
    WORKFLOW_INLINE_OWNERSHIP_LEASE_SECONDS: "1",
    WORKFLOW_LOCAL_DATA_DIR: join(folder, "workflow-data"),
  };
  const server = spawn(process.execPath, [program], { env, cwd: folder, stdio: "inherit" });
  process.once("exit", () => server.kill("SIGKILL"));
  const url = `http://127.0.0.1:${port}`;
  const end = performance.now() + UP_WITHIN_MS;
  while (
    !(await fetch(url).then(
      () => true,
      () => false,
    ))
  ) {
    if (server.exitCode !== null || performance.now() > end) throw new Error("the built server did not come up");
    await wait(20);
  }
  return url;
}

/** Maps agents to runs: these servers choose run ids themselves, and the caller has to keep them. */
export class RunIds {
  readonly #file: string;

  constructor(folder: string) {
    this.#file = join(folder, "run-ids");
  }

  keep(session_id: string, run_id: string): void {
    appendFileSync(this.#file, `${session_id} ${run_id}\n`);
  }

  find(session_id: string): string | null {
    let lines: string[] = [];
    try {
      lines = readFileSync(this.#file, "utf8").split("\n");
    } catch {}
    return lines.find((line) => line.startsWith(`${session_id} `))?.split(" ")[1] ?? null;
  }
}

/** The JSON values of a response, one per line. */
export async function* linesOf<Value>({ body }: Response): AsyncGenerator<Value> {
  for await (const line of createInterface({ input: Readable.fromWeb(body as never) }))
    if (line !== "") yield JSON.parse(line) as Value;
}
