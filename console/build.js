// Builds the console where its files are missing or older than its sources. Plain JavaScript, so that any Node can run it.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const BUILT = join(FOLDER, "dist", "index.html");
/** What it shares with the server's side. */
const SHARED = join(FOLDER, "..", "src", "markdown");

/** The time of the newest file that the console is made from. */
function newestSource(folder) {
  const times = readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== "dist")
    .map((entry) => join(folder, entry.name))
    .map((path) => (statSync(path).isDirectory() ? newestSource(path) : statSync(path).mtimeMs));
  return Math.max(0, ...times);
}

async function build() {
  const vite = await import("vite").catch(() => null);
  if (!vite) {
    // An installation without development dependencies serves the API alone, unless the files were brought along.
    console.error("The console was not built: vite is not installed (npm ci without --omit=dev brings it).");
    return;
  }
  await vite.build({ root: FOLDER, configFile: join(FOLDER, "vite.config.ts"), logLevel: "warn" });
}

const isFresh = existsSync(BUILT) && statSync(BUILT).mtimeMs >= Math.max(newestSource(FOLDER), newestSource(SHARED));
if (!isFresh || process.argv.includes("--force")) await build();
