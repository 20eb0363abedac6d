import { constants } from "node:fs";
import { access, readdir } from "node:fs/promises";
import { basename, extname, join } from "node:path";

/** Files that are loaded into this process, and files that are no programs even where everything is executable. */
const NO_PROGRAM = /\.(?:[cm]?[jt]sx?|md|txt|json|ya?ml|toml|lock|baml|sql|html|css)$/i;
/** What stands beside monikers without being one: hidden files, shared code, tests, the client for Python. */
const NO_MONIKER = /^[._]|^test_|[._]test\.|^everstep\.py$/;

/** The programs of a folder of monikers: files that are executable, or Python. */
export async function programsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory() && !NO_PROGRAM.test(entry.name) && !NO_MONIKER.test(entry.name))
    .map(({ name }) => name)
    .sort();
  const paths = await Promise.all(names.map((name) => programAt(join(folder, name))));
  return paths.filter((path) => path !== null);
}

const programAt = async (path: string): Promise<string | null> =>
  extname(path) === ".py" || (await isExecutable(path)) ? path : null;

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

/** How a program is started: by its own first line where it is executable, else by Python. */
export const commandOf = async (path: string): Promise<[string, ...string[]]> =>
  (await isExecutable(path)) ? [path] : ["python3", path];

/** The name of a moniker that does not say its own. */
export const monikerNameOf = (path: string): string => basename(path, extname(path));
