import { watch } from "node:fs";
import type { Logger } from "pino";
import type { MonikerLoader, ReloadReport } from "../monikers/catalog.ts";
import { HangUp } from "./hang-up.ts";

/** Milliseconds without a further change after which a watched folder is loaded: an editor or git writes several files. */
const DEBOUNCE_MS = 200;

/** Loads changed monikers when asked to: by a request, by SIGHUP, or by a change in their folder. */
export class MonikerReloads {
  readonly #loader: MonikerLoader;
  readonly #log: Logger;

  constructor(loader: MonikerLoader, log: Logger) {
    this.#loader = loader;
    this.#log = log;
  }

  readonly reload = async (): Promise<ReloadReport> => {
    const report = await this.#loader.reload();
    for (const { name, version, change } of report.monikers)
      if (change !== "unchanged") this.#log.info({ moniker: name, version }, `a moniker was ${change}`);
    for (const { file, moniker, error } of report.failed)
      this.#log.error(
        { file, moniker, reason: error },
        "a moniker could not be loaded; what was loaded before goes on",
      );
    return report;
  };

  /** SIGHUP is a request to reload, unless it tells that the terminal is gone. What is returned ends the listening. */
  onHangUp(): () => void {
    const hangUp = new HangUp();
    const listener = () => {
      if (!hangUp.isReal()) return this.#reloadUnasked();
      // Nothing can be written to the log any more, so the process ends as it would without a listener.
      process.off("SIGHUP", listener);
      process.kill(process.pid, "SIGHUP");
    };
    process.on("SIGHUP", listener);
    return () => process.off("SIGHUP", listener);
  }

  /** Reloads after changes in the folder. What is returned ends the watching. */
  watch(folder: string): () => void {
    let timer: NodeJS.Timeout | undefined;
    const watcher = watch(folder, { recursive: true, ignore: ["**/node_modules/**", "**/.git/**"] }, () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#reloadUnasked(), DEBOUNCE_MS);
    });
    watcher.on("error", (error) => this.#log.error({ err: error }, "the monikers' folder cannot be watched any more"));
    return () => {
      clearTimeout(timer);
      watcher.close();
    };
  }

  #reloadUnasked(): void {
    this.reload().catch((error: unknown) => this.#log.error({ err: error }, "the monikers could not be reloaded"));
  }
}
