import { existsSync, watch } from "node:fs";
import type { Logger } from "pino";
import type { MonikerLoader, ReloadReport } from "../monikers/catalog.ts";
import type { OwnTools } from "../tools/own/own-tools.ts";
import { HangUp } from "./hang-up.ts";

/** A watched folder is reloaded after this many milliseconds without a change: editors and git write several files. */
const DEBOUNCE_MS = 200;

/** Reloads monikers and tools on a request, on SIGHUP, or on a change in their folders. */
export class MonikerReloads {
  readonly #loader: MonikerLoader;
  readonly #log: Logger;
  readonly #unwatch: (() => void)[] = [];
  #tools: Pick<OwnTools, "reload"> | undefined;
  /** Failures already logged: a worker that is retried repeatedly is reported once. */
  #lastReported = new Set<string>();

  constructor(loader: MonikerLoader, log: Logger) {
    this.#loader = loader;
    this.#log = log;
    this.#report({ monikers: [], failed: [...(loader.catalog.failed ?? [])] });
    loader.onChange((report) => this.#report(report));
  }

  /** Reloads these tools with the monikers, and watches them if those are watched. */
  addTools(tools: OwnTools): void {
    this.#tools = tools;
    if (this.#unwatch.length > 0 && existsSync(tools.folder)) this.watch(tools.folder);
  }

  readonly reload = async (): Promise<ReloadReport> => {
    const report = await this.#loader.reload();
    this.#lastReported.clear();
    this.#report(report);
    const tools = ((await this.#tools?.reload()) ?? []).map(({ file, error: { message: error } }) => ({ file, error }));
    for (const { file, error } of tools)
      this.#log.error({ file, reason: error }, "a tool could not be loaded; its last good version stays in use");
    return { ...report, failed: [...report.failed, ...tools.map((failure) => ({ ...failure, moniker: null }))] };
  };

  #report({ monikers, failed }: ReloadReport): void {
    for (const { name, version, change } of monikers)
      if (change !== "unchanged") this.#log.info({ moniker: name, version }, `a moniker was ${change}`);
    for (const { file, moniker, error } of failed) {
      const key = JSON.stringify([file, moniker, error]);
      if (this.#lastReported.has(key)) continue;
      // An unreachable worker is not an error in the code.
      const level = error.startsWith("remote_gone") ? "warn" : "error";
      this.#log[level](
        { file, moniker, reason: error },
        "a moniker could not be loaded; its last good version stays in use",
      );
    }
    this.#lastReported = new Set(failed.map(({ file, moniker, error }) => JSON.stringify([file, moniker, error])));
  }

  /** SIGHUP requests a reload, unless it means that the terminal is gone. The returned function stops listening. */
  onHangUp(): () => void {
    const hangUp = new HangUp();
    const listener = () => {
      if (!hangUp.isReal()) return this.#reloadInBackground();
      // The log is gone too, so the process ends as it would without a listener.
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
      timer = setTimeout(() => this.#reloadInBackground(), DEBOUNCE_MS);
    });
    watcher.on("error", (error) => this.#log.error({ err: error, folder }, "a folder can no longer be watched"));
    this.#unwatch.push(() => {
      clearTimeout(timer);
      watcher.close();
    });
  }

  unwatch(): void {
    for (const end of this.#unwatch.splice(0)) end();
  }

  #reloadInBackground(): void {
    this.reload().catch((error: unknown) => this.#log.error({ err: error }, "the monikers could not be reloaded"));
  }
}
