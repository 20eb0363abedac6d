import { existsSync, watch } from "node:fs";
import type { Logger } from "pino";
import type { MonikerLoader, ReloadReport } from "../monikers/catalog.ts";
import type { OwnTools } from "../tools/own/own-tools.ts";
import { HangUp } from "./hang-up.ts";

/** Milliseconds without a further change after which a watched folder is loaded: an editor or git writes several files. */
const DEBOUNCE_MS = 200;

/** Loads changed monikers and tools when asked to: by a request, by SIGHUP, or by a change in their folders. */
export class MonikerReloads {
  readonly #loader: MonikerLoader;
  readonly #log: Logger;
  readonly #unwatch: (() => void)[] = [];
  #tools: Pick<OwnTools, "reload"> | undefined;
  /** Failures that the log has: a worker that is tried again and again is told of once. */
  #lastTold = new Set<string>();

  constructor(loader: MonikerLoader, log: Logger) {
    this.#loader = loader;
    this.#log = log;
    this.#tell({ monikers: [], failed: [...(loader.catalog.failed ?? [])] });
    loader.onChange((report) => this.#tell(report));
  }

  /** From now on these are loaded with the monikers, and where those are watched, watched too. */
  addTools(tools: OwnTools): void {
    this.#tools = tools;
    if (this.#unwatch.length > 0 && existsSync(tools.folder)) this.watch(tools.folder);
  }

  readonly reload = async (): Promise<ReloadReport> => {
    const report = await this.#loader.reload();
    this.#lastTold.clear();
    this.#tell(report);
    const tools = ((await this.#tools?.reload()) ?? []).map(({ file, error: { message: error } }) => ({ file, error }));
    for (const { file, error } of tools)
      this.#log.error({ file, reason: error }, "a tool could not be loaded; what was loaded before goes on");
    return { ...report, failed: [...report.failed, ...tools.map((failure) => ({ ...failure, moniker: null }))] };
  };

  #tell({ monikers, failed }: ReloadReport): void {
    for (const { name, version, change } of monikers)
      if (change !== "unchanged") this.#log.info({ moniker: name, version }, `a moniker was ${change}`);
    for (const { file, moniker, error } of failed) {
      const key = JSON.stringify([file, moniker, error]);
      if (this.#lastTold.has(key)) continue;
      // A worker that is not there yet is no fault of what was written.
      const level = error.startsWith("remote_gone") ? "warn" : "error";
      this.#log[level](
        { file, moniker, reason: error },
        "a moniker could not be loaded; what was loaded before goes on",
      );
    }
    this.#lastTold = new Set(failed.map(({ file, moniker, error }) => JSON.stringify([file, moniker, error])));
  }

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

  /** Reloads after changes in the folder, until `unwatch`. */
  watch(folder: string): void {
    let timer: NodeJS.Timeout | undefined;
    const watcher = watch(folder, { recursive: true, ignore: ["**/node_modules/**", "**/.git/**"] }, () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#reloadUnasked(), DEBOUNCE_MS);
    });
    watcher.on("error", (error) => this.#log.error({ err: error, folder }, "a folder cannot be watched any more"));
    this.#unwatch.push(() => {
      clearTimeout(timer);
      watcher.close();
    });
  }

  unwatch(): void {
    for (const end of this.#unwatch.splice(0)) end();
  }

  #reloadUnasked(): void {
    this.reload().catch((error: unknown) => this.#log.error({ err: error }, "the monikers could not be reloaded"));
  }
}
