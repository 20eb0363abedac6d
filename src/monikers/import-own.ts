import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire, registerHooks } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isOwnFile, type OwnFiles } from "./own-files.ts";

/** Appended to the file name in a moniker's stack traces and module URLs. */
const MARK = "?everstep=";
const MONIKER = new URL("./public.ts", import.meta.url).href;
const require = createRequire(import.meta.url);

/** The snapshot of files in which a module was first requested: its later imports use the same snapshot. */
const origins = new Map<string, OwnFiles>();
/** How often each version failed to load. Node caches a failed module under its URL forever. */
const failures = new Map<string, number>();
/** The version of each file loaded last. */
const loaded = new Map<string, string>();
/** The file being loaded when the current code was started. */
const loading = new AsyncLocalStorage<string>();
let isRegistered = false;

/**
 * Imports a user's file with the modules it imports, all as they are in `files`.
 *
 * Node caches every module under its URL, so a changed one needs a new URL: the file's, with its version appended. What did not
 * change keeps its URL and is not loaded again, so a reload costs only the memory of what changed, which Node never frees.
 */
export async function importOwn(path: string, files: OwnFiles): Promise<unknown> {
  register();
  forgetChangedCommonJs(path, files);
  try {
    const address = addressOf(pathToFileURL(path).href, path, files);
    return await loading.run(path, () => import(address));
  } catch (error) {
    for (const own of files.reachable(path)) {
      const version = files.version(own);
      if (version !== undefined) failures.set(version, (failures.get(version) ?? 0) + 1);
    }
    throw isOfCommonJs(error) ? new Error(COMMON_JS, { cause: error }) : error;
  }
}

const isOfCommonJs = (error: unknown): boolean =>
  error instanceof SyntaxError && error.message.startsWith("Cannot use import statement outside a module");
const COMMON_JS =
  'the package.json around it says or implies "type": "commonjs", and it is an ES module: run `npm pkg set type=module` there';

/** The moniker file that an error comes from: named in its stack, or the file that started the failing code while it was loaded. */
export function ownFileOf(error: unknown): string | null {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const line = stack.split("\n").find((text) => text.includes(MARK)) ?? "";
  const url = /file:\/\/[^?]+/.exec(line)?.[0];
  return url === undefined ? (loading.getStore() ?? null) : fileURLToPath(url);
}

function addressOf(url: string, path: string, files: OwnFiles, parent = ""): string {
  // A file that the code does not name by a path changes its URL with the importing module.
  const version = files.version(path) ?? parent;
  const again = failures.get(version);
  const address = `${url}${MARK}${version}${again === undefined ? "" : `.${again}`}`;
  if (!origins.has(address)) origins.set(address, files);
  return address;
}

/** Node caches CommonJS modules by path alone. */
function forgetChangedCommonJs(path: string, files: OwnFiles): void {
  for (const own of files.reachable(path)) {
    const version = files.version(own) ?? "";
    if (loaded.get(own) !== version) delete require.cache[own];
    loaded.set(own, version);
  }
}

/** Also lets a moniker in any folder import `everstep/moniker`, without a package around it. */
function register(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === "everstep/moniker") return { url: MONIKER, shortCircuit: true };
      const resolved = next(specifier, context);
      const files = origins.get(context.parentURL ?? "");
      if (!files || !resolved.url.startsWith("file:") || resolved.url.includes(MARK)) return resolved;
      const path = fileURLToPath(resolved.url);
      if (!isOwnFile(path)) return resolved;
      const [, parent = ""] = (context.parentURL ?? "").split(MARK);
      return { ...resolved, url: addressOf(resolved.url, path, files, parent) };
    },
    load(url, context, next) {
      const result = next(url, context);
      const text = origins.get(url)?.text(fileURLToPath(url));
      // The file may have changed since it was read.
      return text !== undefined && result.format?.startsWith("module") ? { ...result, source: text } : result;
    },
  });
}
