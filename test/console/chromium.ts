import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium as playwright } from "playwright-core";

/** Root cannot use the sandbox, and a machine without a GPU needs no acceleration. */
const ARGS = ["--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])];

const CACHE = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "everstep");

/** A real Chromium: the one named by `CHROMIUM`, or the one from npm. */
export async function launchChromium(): Promise<Browser> {
  const named = process.env["CHROMIUM"];
  if (named) return playwright.launch({ executablePath: named, args: ARGS });
  const folder = await unpack();
  const executablePath = join(folder, "chromium");
  try {
    return await playwright.launch({ executablePath, args: ARGS });
  } catch (error) {
    if (!/shared libraries/.test(String(error))) throw error;
    // The package also contains the libraries that a bare machine lacks.
    const { setupLambdaEnvironment } = await import("@sparticuz/chromium");
    setupLambdaEnvironment(join(folder, "al2023", "lib"));
    return playwright.launch({ executablePath, args: ARGS });
  }
}

/** Test files run concurrently: each finds the complete browser in the folder, or unpacks it and renames it into place. */
async function unpack(): Promise<string> {
  const inPackage = (path: string) => new URL(path, import.meta.resolve("@sparticuz/chromium"));
  const { version } = JSON.parse(await readFile(inPackage("../package.json"), "utf8")) as { version: string };
  const folder = join(CACHE, `chromium-${version}`);
  if (existsSync(folder)) return folder;
  await mkdir(CACHE, { recursive: true });
  const temporary = await mkdtemp(`${folder}-`);
  const before = process.env["TMPDIR"];
  // The package unpacks into the folder for temporary files.
  process.env["TMPDIR"] = temporary;
  const { default: chromium, inflate } = await import("@sparticuz/chromium");
  chromium.setGraphicsMode = false;
  await chromium.executablePath();
  await inflate(fileURLToPath(inPackage("../bin/al2023.tar.br")));
  if (before === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = before;
  await rename(temporary, folder).catch(() => rm(temporary, { recursive: true }));
  return folder;
}
