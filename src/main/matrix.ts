import { pino } from "pino";
import { redactUrls } from "../domain/redact.ts";
import type { MatrixConfig } from "../surfaces/matrix/config.ts";
import { runMatrix } from "../surfaces/matrix/run-matrix.ts";
import { stopRequested } from "./stop-requested.ts";
import { StrayErrors } from "./stray-errors.ts";
import { UP } from "./supervise.ts";

/** Runs the bot until SIGINT, SIGTERM or a fatal error. Unfinished work resumes at the next start. */
export async function matrix(config: MatrixConfig): Promise<void> {
  const log = pino({ level: config.EVERSTEP_LOG_LEVEL, hooks: { streamWrite: redactUrls } }, pino.destination(2));
  const stopped = stopRequested(new StrayErrors(log));
  void stopped.then((limit_ms) => {
    log.info("stopping");
    // A hanging task must not keep the process alive: everything accepted is in its state.
    setTimeout(() => {
      log.error("the bot did not end in time; leaving it");
      process.exit(1);
    }, limit_ms).unref();
  });
  await runMatrix(config, { log, stopped, onUp: () => process.send?.(UP) });
  // Done: handles kept open elsewhere must not keep the process alive.
  process.exit();
}
