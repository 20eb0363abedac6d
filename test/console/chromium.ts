import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium as playwright } from "playwright-core";

/** Where the package unpacks the browser; it is shared by the test files. */
const UNPACKED = join(tmpdir(), "everstep-chromium");

/** Root has no sandbox, and a machine without a display card needs none of its tricks. */
const ARGS = ["--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])];

/** A real Chromium: the one that `CHROMIUM` names, or the one from npm. */
export async function launchChromium(): Promise<Browser> {
  const named = process.env["CHROMIUM"];
  if (named) return playwright.launch({ executablePath: named, args: ARGS });
  await mkdir(UNPACKED, { recursive: true });
  // The package unpacks into the folder for temporary files, and decides by its name whether it did so before.
  process.env["TMPDIR"] = UNPACKED;
  const { default: chromium, inflate, setupLambdaEnvironment } = await import("@sparticuz/chromium");
  chromium.setGraphicsMode = false;
  const executablePath = await chromium.executablePath();
  try {
    return await playwright.launch({ executablePath, args: ARGS });
  } catch (error) {
    if (!/shared libraries/.test(String(error))) throw error;
    // The libraries that a bare machine lacks come with the package as well.
    const libraries = new URL("../bin/al2023.tar.br", import.meta.resolve("@sparticuz/chromium"));
    const folder = join(UNPACKED, "al2023");
    if (!existsSync(folder)) await inflate(fileURLToPath(libraries));
    setupLambdaEnvironment(join(folder, "lib"));
    return playwright.launch({ executablePath, args: ARGS });
  }
}
