import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));

const GENERATED = new Set(["node_modules", "dist", "results"]);
const TEXT = /\.(?:[cm]?[jt]sx?|json|md|sql|css|html|baml|ya?ml|sh|txt)$/;

export type RepositoryFile = { path: string; text: string };

/** Every text file of a folder of the repository, with paths from that folder and forward slashes. A folder that is not there has none. */
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
