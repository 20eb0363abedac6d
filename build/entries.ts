import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");

/** A module that the package runs or that others import: its name in the bundle, and its source by its path under `src`. */
export type Entry = { name: string; source: string };

type Manifest = { exports: Record<string, string | { types: string; default: string }> };

/** What package.json exports. The path of the declarations tells the source. */
export function exportedEntries(): Entry[] {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
  return Object.values(exports).flatMap((target) => {
    if (typeof target === "string") return [];
    const source = target.types.replace(/^\.\/dist\/types\/(.*)\.d\.ts$/, "$1.ts");
    return [{ name: basename(target.default, ".js"), source }];
  });
}

export const PROGRAM: Entry = { name: "everstep", source: "main/everstep.ts" };
