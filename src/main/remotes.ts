import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { redactUrl } from "../domain/redact.ts";
import { HttpRemote } from "../monikers/remote/http-remote.ts";
import { programsIn } from "../monikers/remote/program-files.ts";
import { ProgramRemote } from "../monikers/remote/program-remote.ts";
import type { RemoteFinder } from "../monikers/remote/remote-monikers.ts";
import type { Config } from "./config.ts";

/** The Python client, so that programs need not install it. */
const PYTHON_CLIENT = fileURLToPath(new URL("../../clients/python", import.meta.url));
/** Variables passed to every program: none of them is secret. */
const PASSED = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/** The configured workers: programs in the folder of monikers, then addresses. */
export function remoteFinder(config: Config, log: Logger): RemoteFinder {
  const { EVERSTEP_MONIKERS, EVERSTEP_REMOTE_MONIKERS, EVERSTEP_REMOTE_SECRET } = config;
  const settings = {
    env: programEnvironment(config.EVERSTEP_MONIKER_ENV),
    most_processes: config.EVERSTEP_MONIKER_PROCESSES,
    onError: boundedLog(log),
  };
  return async () => {
    const folder = EVERSTEP_MONIKERS === undefined ? null : resolve(EVERSTEP_MONIKERS);
    // An unreadable folder is reported where its TypeScript files are loaded.
    const programs = folder === null ? [] : await programsIn(folder).catch(() => []);
    return [
      ...programs.map((name) => ({ name, open: () => new ProgramRemote(name, settings) })),
      ...EVERSTEP_REMOTE_MONIKERS.map((url) => ({
        name: redactUrl(url),
        open: () => new HttpRemote(url, EVERSTEP_REMOTE_SECRET),
      })),
    ];
  };
}

function programEnvironment(names: readonly string[]): Record<string, string> {
  const passed = [...PASSED, ...names].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    ...Object.fromEntries(passed),
    EVERSTEP_STDIO: "1",
    PYTHONPATH: PYTHON_CLIENT,
    PYTHONDONTWRITEBYTECODE: "1",
  };
}

const LONGEST_TEXT = 2000;
const MOST_PER_PERIOD = 50;
const PERIOD_MS = 10_000;

/** Logs what programs write to standard error, rate-limited. */
function boundedLog(log: Logger): (file: string, text: string) => void {
  let since = 0;
  let count = 0;
  return (file, text) => {
    const now = performance.now();
    if (now - since > PERIOD_MS) [since, count] = [now, 0];
    count++;
    if (count > MOST_PER_PERIOD) return;
    log.info({ file, text: text.slice(0, LONGEST_TEXT).trimEnd() }, "a moniker program wrote to standard error");
  };
}
