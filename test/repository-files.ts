import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));

/** The last ones are created by the compilers of the bench's peers. */
const GENERATED = new Set(["node_modules", "dist", "results", ".eve", ".nitro", ".output", ".swc", ".workflow-data"]);
const TEXT = /\.(?:[cm]?[jt]sx?|json|md|sql|css|html|baml|ya?ml|sh|txt)$/;

export type RepositoryFile = { path: string; text: string };

/**
 * Every text file in a folder of the repository, with paths relative to that folder and forward slashes. Empty if the folder
 * does not exist.
 */
export async function readFolder(folder: string): Promise<RepositoryFile[]> {
  const root = join(REPOSITORY, folder);
  const paths = await listPaths(root);
  return Promise.all(
    paths
      .filter((path) => TEXT.test(path))
      .sort()
      .map(async (path) => ({
        path: relative(root, path).split(sep).join("/"),
        text: await readFile(path, "utf8"),
      })),
  );
}

async function listPaths(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const nested = entries.map(async (entry) => {
    if (GENERATED.has(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? listPaths(path) : [path];
  });
  return (await Promise.all(nested)).flat();
}
