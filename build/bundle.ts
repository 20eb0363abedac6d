import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import type { Entry } from "./entries.ts";

const ROOT = resolve(import.meta.dirname, "..");
const SOURCES = join(ROOT, "src");

/** What package.json names as dependencies. Everything else is in the bundle. */
const NATIVE = [/^@lancedb\/lancedb-/, /^@boundaryml\/baml-/, /^@matrix-org\/matrix-sdk-crypto-wasm$/];
const ZOD = /^zod(\/|$)/;
/** What native loaders look for beside themselves, before they take their platform's package. */
const BESIDE_LOADERS = [/\.node$/, /\.wasi\.cjs$/];

type BundleOptions = {
  folder: string;
  entries: readonly Entry[];
  /** The version of the built-in monikers, which is made from files that the bundle does not have. */
  monikers_version: string;
  /** Whether zod is in the bundle. Not by default: it is a dependency of the package. */
  has_zod?: boolean;
};

/** Writes the program and all that it imports into a folder. Answers the files that went into it. */
export async function bundle({ folder, entries, monikers_version, has_zod = false }: BundleOptions): Promise<string[]> {
  await using build = await rolldown({
    input: Object.fromEntries(entries.map(({ name, source }) => [name, join(SOURCES, source)])),
    platform: "node",
    external: [...NATIVE, ...(has_zod ? [] : [ZOD]), ...BESIDE_LOADERS],
    plugins: [relativeUrls(entries), ownRequires()],
    transform: {
      define: {
        // Modules of CommonJS ask for these.
        __filename: "import.meta.filename",
        __dirname: "import.meta.dirname",
        MONIKERS_VERSION: JSON.stringify(monikers_version),
      },
    },
    onLog(level, log, report) {
      // LanceDB evaluates an import of an embedding library, which is never asked for.
      const isExpected = log.code === "EVAL" && log.id?.includes("@lancedb") === true;
      if (!isExpected) report(level === "warn" ? "error" : level, log);
    },
  });
  const { output } = await build.write({
    dir: folder,
    format: "esm",
    chunkFileNames: "[name]-[hash].js",
    comments: { legal: false, annotation: false, jsdoc: false },
    // A third smaller, and a stack trace has every name still.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
  });
  return output.flatMap((file) => (file.type === "chunk" ? Object.keys(file.modules) : []));
}

const RELATIVE_URL = /new URL\("(\.[^"]+)", import\.meta\.url\)/g;

/**
 * What a module of ours names from its own place. Another module, such as a thread's, becomes an entry of the bundle. Other files and
 * folders of the sources are copied to the path that they have there; what is outside the sources the package has at the same place.
 */
function relativeUrls(entries: readonly Entry[]): Plugin {
  return {
    name: "relative-urls",
    transform: {
      filter: { id: /\.ts$/, code: "import.meta.url" },
      handler(code, id) {
        if (!id.startsWith(SOURCES)) return null;
        const emit: Emit = (file) => this.emitFile(file);
        return code.replace(RELATIVE_URL, (_, path: string) => {
          const target = resolve(dirname(id), path);
          return `new URL("${placeOf(target, entries, emit)}", import.meta.url)`;
        });
      },
    },
  };
}

type Emit = (
  file: { type: "chunk"; id: string; fileName: string } | { type: "asset"; fileName: string; source: Uint8Array },
) => void;

/** Where the bundle, whose files are all in one folder, finds a file or a folder of the repository. */
function placeOf(target: string, entries: readonly Entry[], emit: Emit): string {
  if (target.endsWith(".ts")) {
    const entry = entries.find(({ source }) => join(SOURCES, source) === target);
    const name = entry?.name ?? basename(target, ".ts");
    if (entry === undefined) emit({ type: "chunk", id: target, fileName: `${name}.js` });
    return `./${name}.js`;
  }
  if (!target.startsWith(SOURCES + sep)) return `../${withSlashes(relative(ROOT, target))}`;
  const files = statSync(target).isFile() ? [target] : readdirSync(target).map((name) => join(target, name));
  for (const file of files)
    emit({ type: "asset", fileName: withSlashes(relative(SOURCES, file)), source: readFileSync(file) });
  return `./${withSlashes(relative(SOURCES, target))}${statSync(target).isFile() ? "" : "/"}`;
}

const withSlashes = (path: string): string => path.split(sep).join("/");

/** Modules that make a `require` of their own: what they ask it for is in the bundle. */
function ownRequires(): Plugin {
  return {
    name: "own-requires",
    transform: {
      filter: { code: "createRequire(" },
      handler(code, id) {
        if (id.startsWith(SOURCES)) return code.replaceAll('createRequire(import.meta.url)("', 'require("');
        // It assigns to the variable that every module of CommonJS has and one of a bundle has not.
        return id.includes("@boundaryml") ? code.replace("require = createRequire(__filename)", "") : null;
      },
    },
  };
}

const PACKAGE_FOLDER = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/;
const LICENSE = /^(?:licen[cs]e|copying)/i;

/** The licenses of the packages in a bundle, which ask to be passed on. */
export function licensesOf(modules: readonly string[]): string {
  const folders = new Set(
    modules.flatMap((id) => PACKAGE_FOLDER.exec(id)?.[0] ?? []).filter((path) => existsSync(path)),
  );
  const texts = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
    const file = readdirSync(folder).find((candidate) => LICENSE.test(candidate));
    const text = file === undefined ? `License: ${license}` : readFileSync(join(folder, file), "utf8").trim();
    return `${name} ${version}\n\n${text}\n`;
  });
  return [...new Set(texts)].sort().join(`\n${"-".repeat(80)}\n\n`);
}

type Manifest = { name: string; version: string; license: string };
