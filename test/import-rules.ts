import { posix } from "node:path";

/**
 * A layer is a folder or a file under src, written without `src/`; a file belongs to the layer with the longest matching name.
 */
export type ImportRules = {
  /** What a layer may import besides itself. `*` is everything. */
  layers: Readonly<Record<string, readonly string[]>>;
  /** Packages that only these layers may import, including their subpaths. */
  packages: Readonly<Record<string, readonly string[]>>;
  /** Layers that may import no packages but these. */
  only_packages: Readonly<Record<string, readonly string[]>>;
  /** Files that may import a path computed at run time, which no table can check. */
  computed_imports: readonly string[];
};

/** Paths from src, with forward slashes. */
export type SourceFile = { path: string; text: string };

// Anchored to a line's first word or to a call, so that prose in a comment is not mistaken for an import.
const LITERAL_IMPORTS = [
  /^\s*import\s+(?:[\w$*{},\s]+?\s*from\s*)?["']([^"'\n]+)["']/gm,
  /^\s*export\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s*from\s*["']([^"'\n]+)["']/gm,
  /\bimport\s*\(\s*["'`]([^"'`\n$]+)["'`]/g,
  /\b(?:require|import\.meta\.resolve)\s*\(\s*["'`]([^"'`\n$]+)["'`]/g,
  /\bnew\s+URL\(\s*["'`](\.[^"'`\n$]+)["'`]\s*,\s*import\.meta\.url/g,
];
const COMPUTED_IMPORT = /\b(?:import|require|import\.meta\.resolve)\s*\(\s*(?!["'`][^"'`\n$]+["'`])[^)\s]/;

export function importsOf(text: string): string[] {
  return LITERAL_IMPORTS.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] as string));
}

/** One line for each broken rule. */
export function brokenImportRules(files: readonly SourceFile[], rules: ImportRules): string[] {
  return files.flatMap((file) => {
    const layer = layerOf(file.path, rules);
    if (layer === null) return [`${file.path} belongs to no layer; add its folder to the table`];
    const broken = importsOf(file.text).flatMap((imported) => {
      const reason = imported.startsWith(".")
        ? brokenByFile(file.path, layer, imported, rules)
        : brokenByPackage(layer, imported, rules);
      return reason === null ? [] : [`${file.path} imports ${imported}: ${reason}`];
    });
    if (COMPUTED_IMPORT.test(file.text) && !rules.computed_imports.includes(file.path))
      broken.push(`${file.path} imports something that is not a literal name`);
    return broken;
  });
}

function brokenByFile(path: string, layer: string, imported: string, rules: ImportRules): string | null {
  const allowed = rules.layers[layer] ?? [];
  if (allowed.includes("*")) return null;
  const target = posix.join(posix.dirname(path), imported);
  if (target.startsWith("../")) return `${layer} may not reach outside src`;
  const targetLayer = layerOf(target, rules);
  if (targetLayer === null) return "what it imports belongs to no layer";
  return targetLayer === layer || allowed.includes(targetLayer) ? null : `${layer} may not import ${targetLayer}`;
}

function brokenByPackage(layer: string, imported: string, rules: ImportRules): string | null {
  if (imported.startsWith("#")) return "an alias hides what is imported; use the relative path";
  const names = (name: string): boolean => imported === name || imported.startsWith(`${name}/`);
  const owner = Object.keys(rules.packages).find(names);
  if (owner !== undefined && !rules.packages[owner]?.includes(layer)) return `${layer} may not import ${owner}`;
  const only = rules.only_packages[layer];
  return only === undefined || only.some(names) ? null : `${layer} may import no package but ${only.join(", ")}`;
}

function layerOf(path: string, rules: ImportRules): string | null {
  const fitting = Object.keys(rules.layers).filter((layer) => path === layer || path.startsWith(`${layer}/`));
  return fitting.sort((a, b) => b.length - a.length)[0] ?? null;
}
