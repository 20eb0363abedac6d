import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { EverstepError } from "../domain/errors.ts";
import { chat } from "./builtin/chat.ts";
import { count } from "./builtin/count.ts";
import { echo } from "./builtin/echo.ts";
import { joke } from "./builtin/joke.ts";
import { research } from "./builtin/research.ts";
import { script } from "./builtin/script.ts";
import { summarize } from "./builtin/summarize.ts";
import type { Moniker } from "./moniker.ts";
import { resolveOwnPackage } from "./resolve-package.ts";

export type Catalog = ReadonlyMap<string, Moniker>;

export const BUILT_IN: readonly Moniker[] = [joke, summarize, research, chat, echo, count, script];

const monikerSchema = z.object({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/, "is lower-case letters, digits, - and _, at most 63"),
  kind: z.enum(["continuous", "finite", "reactive"]),
  description: z.string().min(1),
  params: z.instanceof(z.ZodType, { message: "must be a zod schema" }),
  step: z.custom((value) => typeof value === "function", "must be a function"),
});

/** The built-in monikers and those of a folder, one TypeScript file each with the moniker as its default export. */
export async function loadCatalog(folder: string | undefined): Promise<Catalog> {
  const catalog = new Map(BUILT_IN.map((moniker) => [moniker.name, moniker]));
  if (folder === undefined) return catalog;
  resolveOwnPackage();
  for (const file of await filesOf(folder)) {
    const moniker = await load(file);
    if (catalog.has(moniker.name)) throw invalid(file, `another moniker is named ${moniker.name} already`);
    catalog.set(moniker.name, moniker);
  }
  return catalog;
}

async function filesOf(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    return names
      .filter((name) => /\.(ts|mts|js|mjs)$/.test(name) && !/\.(test|d)\.\w+$/.test(name))
      .sort()
      .map((name) => join(resolve(folder), name));
  } catch (error) {
    throw new EverstepError(
      "config_invalid",
      `EVERSTEP_MONIKERS=${folder} cannot be read`,
      "name a folder of moniker files",
      error,
    );
  }
}

async function load(file: string): Promise<Moniker> {
  const module: unknown = await import(pathToFileURL(file).href).catch((error: unknown) => {
    throw invalid(file, error instanceof Error ? error.message : String(error), error);
  });
  const moniker = (module as { default?: unknown }).default;
  const parsed = monikerSchema.safeParse(moniker);
  if (parsed.success) return lingering(moniker as Moniker);
  const [issue] = parsed.error.issues;
  throw invalid(file, `its default export is not a moniker: ${issue?.path.join(".")} ${issue?.message}`);
}

/**
 * A rejection that a step left behind is known one turn of the event loop later: only then its step counts as finished, so
 * that it fails as the step and not as nobody's.
 */
const lingering = (moniker: Moniker): Moniker => ({
  ...moniker,
  async step(frame, context) {
    const returned = await moniker.step(frame, context);
    await nextTurn();
    return returned;
  },
});

const invalid = (file: string, why: string, cause?: unknown): EverstepError =>
  new EverstepError("moniker_invalid", `${file}: ${why}`, "docs/writing-a-moniker.md shows one", cause);
