import { constants } from "node:fs";
import { access, readdir } from "node:fs/promises";
import { basename, extname, join } from "node:path";

/** Files that are loaded into this process, and files that are not programs even if marked executable. */
const NOT_A_PROGRAM = /\.(?:[cm]?[jt]sx?|md|txt|json|ya?ml|toml|lock|baml|sql|html|css)$/i;
/** Files beside monikers: hidden files, shared code, tests, the Python client. */
const NOT_A_MONIKER = /^[._]|^test_|[._]test\.|^everstep\.py$/;

/** The programs in a folder of monikers: executable files and Python files. */
export async function programsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory() && !NOT_A_PROGRAM.test(entry.name) && !NOT_A_MONIKER.test(entry.name))
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

/** How to start a program: directly if it is executable, else with Python. */
export const commandOf = async (path: string): Promise<[string, ...string[]]> =>
  (await isExecutable(path)) ? [path] : ["python3", path];

/** The name of a moniker that does not state one. */
export const monikerNameOf = (path: string): string => basename(path, extname(path));
