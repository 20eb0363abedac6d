import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { z } from "zod";
import { Mutex } from "../../concurrency/mutex.ts";
import { EverstepError } from "../../domain/errors.ts";
import { importOwn } from "../../monikers/import-own.ts";
import { OwnFiles } from "../../monikers/own-files.ts";
import type { OwnTool } from "../define-tool.ts";
import type { ToolOutcome } from "../tool.ts";
import { untilAborted } from "../tool-registry.ts";
import { type ToolCallContext, toolError, toolResult } from "../tool-server.ts";
import { type ZodTool, ZodToolServer } from "../zod-tool-server.ts";

const OWN_SERVER = "own";
const DEFAULT_FOLDER = "./tools";

const toolSchema = z.object({
  name: z.string().optional(),
  description: z.string().min(1),
  input: z.instanceof(z.ZodType, { message: "must be a zod schema" }),
  read_only: z.boolean().optional(),
  idempotent: z.boolean().optional(),
  destructive: z.boolean().optional(),
  run: z.custom((value) => typeof value === "function", "must be a function"),
});
const NAME = /^[\w.-]{1,64}$/;

type LoadedFile = { file: string; version: string; files: OwnFiles; tools: ZodTool[] };
type Failure = { file: string; error: EverstepError };

/**
 * Users' own tools: every export of a file in the folder made with `defineTool`. They are named `own/<tool>`.
 *
 * OWNTOOLS-1  At startup an unusable file is an error. At a reload its tools stay as they were.
 * OWNTOOLS-2  A file whose version did not change is not loaded again.
 * OWNTOOLS-3  In the default folder only files that import `everstep/moniker` are loaded: a folder `tools` may contain
 *             anything.
 */
export class OwnTools {
  readonly server = new ZodToolServer(OWN_SERVER);
  readonly folder: string;
  readonly #isNamed: boolean;
  readonly #mutex = new Mutex();
  #loaded: readonly LoadedFile[] = [];

  private constructor(folder: string | undefined) {
    this.folder = resolve(folder ?? DEFAULT_FOLDER);
    this.#isNamed = folder !== undefined;
  }

  static async open(folder: string | undefined): Promise<OwnTools> {
    const tools = new OwnTools(folder);
    const [first] = await tools.reload();
    if (first) throw first.error; // OWNTOOLS-1
    return tools;
  }

  /** Loads what was added or changed and removes the rest. Returns the failures. */
  async reload(): Promise<Failure[]> {
    return this.#mutex.run(async () => {
      const { loaded, failures } = await this.#load();
      this.#loaded = loaded;
      this.server.replace(loaded.flatMap(({ tools }) => tools));
      return failures;
    });
  }

  async #load(): Promise<{ loaded: LoadedFile[]; failures: Failure[] }> {
    const loaded: LoadedFile[] = [];
    const failures: Failure[] = [];
    const files = await this.#files().catch((error: EverstepError) => error);
    if (files instanceof EverstepError)
      return { loaded: [...this.#loaded], failures: [{ file: this.folder, error: files }] };
    for (const file of files) {
      const before = this.#loaded.find((entry) => entry.file === file);
      try {
        const next = await loadFile(file, before);
        requireNew(next, loaded);
        loaded.push(next);
      } catch (error) {
        failures.push({ file, error: error as EverstepError });
        if (before) loaded.push(before); // OWNTOOLS-1
      }
    }
    return { loaded, failures };
  }

  async #files(): Promise<string[]> {
    const names = await readdir(this.folder).catch((error: NodeJS.ErrnoException) => {
      if (!this.#isNamed && (error.code === "ENOENT" || error.code === "ENOTDIR")) return [];
      throw new EverstepError(
        "config_invalid",
        `EVERSTEP_TOOLS=${this.folder} cannot be read`,
        "set it to an existing folder",
        error,
      );
    });
    const paths = names
      .filter((name) => /\.(ts|mts|js|mjs)$/.test(name) && !/\.(test|d)\.\w+$/.test(name))
      .sort()
      .map((name) => join(this.folder, name));
    if (this.#isNamed) return paths;
    const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")));
    return paths.filter((_, at) => texts[at]?.includes("everstep/moniker")); // OWNTOOLS-3
  }
}

async function loadFile(file: string, before: LoadedFile | undefined): Promise<LoadedFile> {
  const failed = (error: unknown) => {
    throw invalid(file, error instanceof Error ? error.message : String(error), error);
  };
  const path = await realpath(file).catch(failed);
  const files = await OwnFiles.read(path, before?.files);
  const version = files.version(path) ?? "";
  if (before?.version === version) return before; // OWNTOOLS-2
  const module = (await importOwn(path, files).catch(failed)) as Record<string, unknown>;
  const exported = Object.entries(module).filter(([, value]) => looksLikeTool(value));
  if (exported.length === 0) throw invalid(file, "it exports no tool");
  const tools = exported.map(([name, value]) => toZodTool(file, name === "default" ? stem(file) : name, value));
  return { file, version, files, tools };
}

const stem = (file: string): string => basename(file, extname(file));

/** Whether it is meant as a tool; helpers may be exported too. */
const looksLikeTool = (value: unknown): boolean => typeof value === "object" && value !== null && "run" in value;

function toZodTool(file: string, exportName: string, value: unknown): ZodTool {
  const parsed = toolSchema.safeParse(value);
  const [issue] = parsed.error?.issues ?? [];
  if (issue) throw invalid(file, `the export ${exportName} is not a tool: ${issue.path.join(".")} ${issue.message}`);
  const tool = value as OwnTool;
  const name = tool.name ?? exportName;
  if (!NAME.test(name))
    throw invalid(file, `${JSON.stringify(name)} is not a valid name: letters, digits, _ . and -, at most 64`);
  const { description, input, read_only = false, idempotent = read_only, destructive = false } = tool;
  return { name, description, input, read_only, idempotent, destructive, run: (args, call) => run(tool, args, call) };
}

/** The model gets its errors; they do not fail the step. */
async function run(tool: OwnTool, args: unknown, { signal, workspace, ids }: ToolCallContext): Promise<ToolOutcome> {
  try {
    const value: unknown = await untilAborted(Promise.resolve(tool.run(args, { signal, workspace, ids })), signal);
    if (typeof value === "string") return toolResult(value);
    return toolResult(value === undefined ? "(no output)" : JSON.stringify(value, null, 1));
  } catch (error) {
    signal.throwIfAborted();
    return toolError(error instanceof Error ? error.message : String(error));
  }
}

function requireNew({ file, tools }: LoadedFile, others: readonly LoadedFile[]): void {
  const names = [...others.flatMap((other) => other.tools), ...tools].map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw invalid(file, `another tool is already named ${twice}`);
}

const invalid = (file: string, why: string, cause?: unknown): EverstepError =>
  new EverstepError("tool_invalid", `${file}: ${why}`, "docs/tools.md has an example", cause);
