import { readdir, realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { Mutex } from "../concurrency/mutex.ts";
import { EverstepError } from "../domain/errors.ts";
import type { JsonObject } from "../domain/json.ts";
import { agent } from "./builtin/agent.ts";
import { chat } from "./builtin/chat.ts";
import { count } from "./builtin/count.ts";
import { echo } from "./builtin/echo.ts";
import { joke } from "./builtin/joke.ts";
import { research } from "./builtin/research.ts";
import { schedule } from "./builtin/schedule.ts";
import { script } from "./builtin/script.ts";
import { summarize } from "./builtin/summarize.ts";
import { task } from "./builtin/task.ts";
import { importOwn } from "./import-own.ts";
import { type Moniker, monikerKindSchema, monikerNameSchema } from "./moniker.ts";
import { OwnFiles, versionOfFolder } from "./own-files.ts";

/** A moniker with the version of its code and prompts. */
export type VersionedMoniker = Moniker & {
  readonly version?: string;
  /** The worker that runs it, if that is not this process. */
  readonly remote?: string;
  /** `params` as its author wrote it, if that was JSON Schema. */
  readonly params_schema?: JsonObject;
};
/** The current monikers by name; a reload changes it in place. */
export type Catalog = ReadonlyMap<string, VersionedMoniker> & {
  /** What failed to load in the last attempt. */
  readonly failed?: readonly SourceFailure[];
  /** Workers that have not described their monikers yet. */
  readonly awaited?: readonly string[];
};

/** A file or worker that could not be used, and the moniker that stays as it was. */
export type SourceFailure = { file: string; moniker: string | null; error: string };

/** Monikers from elsewhere, which may arrive later or change on their own. */
export interface MonikerSource {
  readonly monikers: readonly VersionedMoniker[];
  readonly failures: readonly SourceFailure[];
  readonly awaited: readonly string[];
  /** Reports changes outside of a reload. */
  onChange(listener: () => void): void;
  start(): Promise<void>;
  reload(): Promise<void>;
}

export const BUILT_IN: readonly Moniker[] = [
  agent,
  chat,
  task,
  research,
  summarize,
  joke,
  echo,
  count,
  script,
  schedule,
];

/** The result of a reload. */
export type ReloadReport = {
  /** All except the built-in ones. */
  monikers: { name: string; version: string; change: "added" | "changed" | "removed" | "unchanged" }[];
  failed: SourceFailure[];
};

type LoadedFile = { file: string; files: OwnFiles; moniker: Moniker & { readonly version: string } };

const monikerSchema = z.object({
  name: monikerNameSchema,
  kind: monikerKindSchema,
  description: z.string().min(1),
  params: z.instanceof(z.ZodType, { message: "must be a zod schema" }),
  step: z.custom((value) => typeof value === "function", "must be a function"),
  migrate: z.custom((value) => typeof value === "function", "must be a function").optional(),
});

/** Defined by the package build, where this folder does not exist. */
declare const MONIKERS_VERSION: string | undefined;

class PublishedCatalog extends Map<string, VersionedMoniker> {
  failed: readonly SourceFailure[] = [];
  awaited: readonly string[] = [];
}

/**
 * The built-in monikers, those of a folder (one file each, the moniker as its default export), and those of external workers.
 *
 * CATALOG-1  At startup an unusable file is an error. At a reload its moniker stays as it was.
 * CATALOG-2  A reload is atomic: nobody sees some monikers old and some new.
 * CATALOG-3  A moniker whose version did not change is not loaded again.
 * CATALOG-4  Of two monikers with the same name the first wins: built-in, then the folder, then workers in the configured
 *            order. The other one is reported as failed.
 */
export class MonikerLoader {
  readonly #folder: string | undefined;
  readonly #builtIn: VersionedMoniker[];
  readonly #elsewhere: MonikerSource | undefined;
  readonly #catalog = new PublishedCatalog();
  readonly #mutex = new Mutex();
  #loaded: readonly LoadedFile[] = [];
  #failedFiles: readonly SourceFailure[] = [];
  #onChange: (report: ReloadReport) => void = () => {};

  private constructor(folder: string | undefined, version: string, elsewhere: MonikerSource | undefined) {
    this.#folder = folder === undefined ? undefined : resolve(folder);
    this.#builtIn = BUILT_IN.map((moniker) => ({ ...moniker, version }));
    this.#elsewhere = elsewhere;
    this.#publish([], []);
  }

  static async open(folder: string | undefined, elsewhere?: MonikerSource): Promise<MonikerLoader> {
    const loader = new MonikerLoader(folder, await builtInVersion(), elsewhere);
    const [{ loaded, failures }] = await Promise.all([loader.#load(), elsewhere?.start()]);
    const [first] = failures;
    if (first) throw first.error; // CATALOG-1
    loader.#publish(loaded, []);
    elsewhere?.onChange(() => loader.#publishChange());
    return loader;
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  /** Reports changes that happened without a reload. */
  onChange(listener: (report: ReloadReport) => void): void {
    this.#onChange = listener;
  }

  /** Loads what was added or changed and removes the rest. A running step finishes on the code it started with. */
  async reload(): Promise<ReloadReport> {
    return this.#mutex.run(async () => {
      const [{ loaded, failures }] = await Promise.all([this.#load(), this.#elsewhere?.reload()]);
      const failed = failures.map(({ file, error }) => ({
        file,
        moniker: loaded.find((entry) => entry.file === file)?.moniker.name ?? null,
        error: error.message,
      }));
      return this.#publish(loaded, failed);
    });
  }

  #publishChange(): void {
    // A reload in progress publishes and reports its result as a whole.
    if (this.#mutex.isFree) this.#onChange(this.#publish(this.#loaded, this.#failedFiles));
  }

  async #load(): Promise<{ loaded: LoadedFile[]; failures: { file: string; error: EverstepError }[] }> {
    const loaded: LoadedFile[] = [];
    const failures: { file: string; error: EverstepError }[] = [];
    const folder = this.#folder;
    if (folder === undefined) return { loaded, failures };
    const files = await filesOf(folder).catch((error: EverstepError) => error);
    if (files instanceof EverstepError)
      return { loaded: [...this.#loaded], failures: [{ file: folder, error: files }] };
    const isTaken = (name: string): boolean =>
      [...this.#builtIn, ...loaded.map(({ moniker }) => moniker)].some((other) => other.name === name);
    for (const file of files) {
      const before = this.#loaded.find((entry) => entry.file === file);
      try {
        const next = await loadFile(file, before);
        const { name } = next.moniker;
        if (isTaken(name)) throw invalid(file, `another moniker is already named ${name}`);
        loaded.push(next);
      } catch (error) {
        failures.push({ file, error: error as EverstepError });
        if (before && !isTaken(before.moniker.name)) loaded.push(before); // CATALOG-1
      }
    }
    return { loaded, failures };
  }

  /** CATALOG-2: synchronous. */
  #publish(loaded: readonly LoadedFile[], failedFiles: readonly SourceFailure[]): ReloadReport {
    const before = this.#added();
    this.#loaded = loaded;
    this.#failedFiles = failedFiles;
    const catalog = this.#catalog;
    catalog.clear();
    for (const moniker of [...this.#builtIn, ...loaded.map((file) => file.moniker)]) catalog.set(moniker.name, moniker);
    const failed = [...failedFiles, ...(this.#elsewhere?.failures ?? [])];
    for (const moniker of this.#elsewhere?.monikers ?? []) {
      const holder = catalog.get(moniker.name);
      if (holder)
        failed.push(clash(moniker, holder)); // CATALOG-4
      else catalog.set(moniker.name, moniker);
    }
    catalog.failed = failed;
    catalog.awaited = this.#elsewhere?.awaited ?? [];
    return { monikers: changes(before, this.#added()), failed };
  }

  #added(): VersionedMoniker[] {
    return [...this.#catalog.values()].slice(this.#builtIn.length);
  }
}

/**
 * One version for all built-in monikers, over this whole folder. They share prompts, tools and the model code and change only
 * with a release, so one hash covers everything and reads each file once.
 */
const builtInVersion = async (): Promise<string> =>
  typeof MONIKERS_VERSION === "string" ? MONIKERS_VERSION : versionOfFolder(import.meta.dirname);

/** The monikers of a folder and the built-in ones. */
export const loadCatalog = async (folder: string | undefined): Promise<Catalog> =>
  (await MonikerLoader.open(folder)).catalog;

async function filesOf(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    return names
      .filter((name) => /\.(ts|mts|js|mjs)$/.test(name) && !/\.(test|d)\.\w+$/.test(name))
      .sort()
      .map((name) => join(folder, name));
  } catch (error) {
    throw new EverstepError(
      "config_invalid",
      `EVERSTEP_MONIKERS=${folder} cannot be read`,
      "set it to a folder of moniker files",
      error,
    );
  }
}

async function loadFile(file: string, before: LoadedFile | undefined): Promise<LoadedFile> {
  const failed = (error: unknown) => {
    throw invalid(file, error instanceof Error ? error.message : String(error), error);
  };
  const path = await realpath(file).catch(failed);
  const files = await OwnFiles.read(path, before?.files);
  const version = files.version(path) ?? "";
  if (before?.moniker.version === version) return before; // CATALOG-3
  const module = await importOwn(path, files).catch(failed);
  const moniker = (module as { default?: unknown }).default;
  const parsed = monikerSchema.safeParse(moniker);
  if (parsed.success) return { file, files, moniker: { ...awaitingRejections(moniker as Moniker), version } };
  const [issue] = parsed.error.issues;
  throw invalid(file, `its default export is not a moniker: ${issue?.path.join(".")} ${issue?.message}`);
}

function changes(before: readonly VersionedMoniker[], after: readonly VersionedMoniker[]): ReloadReport["monikers"] {
  const old = new Map(before.map(({ name, version = "" }) => [name, version]));
  const names = new Set(after.map(({ name }) => name));
  const removed = before.filter(({ name }) => !names.has(name));
  return [
    ...after.map(({ name, version = "" }) => ({ name, version, change: changeFrom(old.get(name), version) })),
    ...removed.map(({ name, version = "" }) => ({ name, version, change: "removed" as const })),
  ];
}

function clash({ name, remote = "" }: VersionedMoniker, holder: VersionedMoniker): SourceFailure {
  const other = holder.remote === undefined ? "another moniker" : `a moniker of ${holder.remote}`;
  const { message } = invalid(remote, `${other} is already named ${name} and keeps the name`);
  return { file: remote, moniker: null, error: message };
}

const changeFrom = (before: string | undefined, version: string): "added" | "changed" | "unchanged" =>
  before === undefined ? "added" : before === version ? "unchanged" : "changed";

/**
 * A rejection that a step leaves behind surfaces one turn of the event loop later. The step counts as finished only then, so
 * that the rejection fails the step.
 */
const awaitingRejections = (moniker: Moniker): Moniker => ({
  ...moniker,
  async step(frame, context) {
    const returned = await moniker.step(frame, context);
    await nextTurn();
    return returned;
  },
});

const invalid = (file: string, why: string, cause?: unknown): EverstepError =>
  new EverstepError("moniker_invalid", `${file}: ${why}`, "docs/writing-a-moniker.md has an example", cause);
