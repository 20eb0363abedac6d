import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../test/free-port.ts";
import { getRequest, KeptConnection, sendChecked } from "./kept-connection.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/everstep.js", import.meta.url));
const LOOK_EVERY_MS = 5;
const READY_WITHIN_MS = 60_000;

/** CPU time in seconds since an arbitrary moment, resident memory in bytes. */
type Usage = { processor: number; resident: number };

export type EverstepProcess = AsyncDisposable & {
  port: number;
  /** From the start of the process to the first successful response of `/health`, in milliseconds. */
  ready_ms: number;
  /** For the bench's own requests, separate from the load. */
  connection: KeptConnection;
  /** Resolves when every action is settled, so that leftover work does not disturb the next measurement. */
  settled(): Promise<void>;
  usage(): Promise<Usage>;
  /** A value of `/metrics` by its full name. */
  metric(name: string): Promise<number>;
};

/** `everstep serve` in a separate process with its store in `folder`; `more` adds to its environment. It ends with its scope. */
export async function startEverstep(folder: string, more: Record<string, string> = {}): Promise<EverstepProcess> {
  const port = await freePort();
  const begun = performance.now();
  const server = spawn(process.execPath, [PROGRAM, "serve"], {
    env: { ...environment(folder, port), ...more },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const exit = once(server, "exit");
  const kill = (): void => void server.kill("SIGKILL");
  process.once("exit", kill);
  const end = async (): Promise<void> => {
    process.removeListener("exit", kill);
    kill();
    await exit;
  };
  try {
    const connection = await firstHealthy(port, () => server.exitCode !== null, begun + READY_WITHIN_MS);
    const ready_ms = performance.now() - begun;
    return { port, ready_ms, connection, ...questions(connection), [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Without the settings that the caller's shell has for another Everstep. */
function environment(folder: string, port: number): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("EVERSTEP_"));
  return {
    ...Object.fromEntries(others),
    EVERSTEP_STORE: `lancedb:${folder}`,
    EVERSTEP_WORKSPACE: join(folder, "workspace"),
    EVERSTEP_PORT: String(port),
    EVERSTEP_LOG_LEVEL: "warn",
  };
}

async function firstHealthy(port: number, isOver: () => boolean, until: number): Promise<KeptConnection> {
  while (!isOver() && performance.now() < until) {
    const connection = await KeptConnection.open(port).catch(() => null);
    const answer = await connection?.send(getRequest("/health")).catch(() => null);
    if (connection && answer?.status === 200) return connection;
    connection?.[Symbol.dispose]();
    await wait(LOOK_EVERY_MS);
  }
  throw new Error("`everstep serve` did not come up");
}

function questions(connection: KeptConnection): Pick<EverstepProcess, "settled" | "usage" | "metric"> {
  const metrics = async (): Promise<string> => (await connection.send(getRequest("/metrics"))).body.toString();
  const read = (text: string, name: string): number => {
    const line = text.split("\n").find((one) => one.startsWith(`${name} `));
    return line === undefined ? Number.NaN : Number(line.slice(name.length + 1));
  };
  return {
    async settled() {
      const depth = async (): Promise<number> =>
        (await sendChecked<{ queue_depth: number }>(connection, getRequest("/health"))).queue_depth;
      while ((await depth()) > 0) await wait(LOOK_EVERY_MS);
    },
    async usage() {
      const text = await metrics();
      const processor = read(text, "process_cpu_seconds_total");
      return { processor, resident: read(text, "process_resident_memory_bytes") };
    },
    async metric(name) {
      return read(await metrics(), name);
    },
  };
}
