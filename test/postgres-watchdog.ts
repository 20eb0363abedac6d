import { rmSync } from "node:fs";

// Outlives a test process that was killed: once its pipe to it breaks, the database server goes too.
const [pid, folder] = process.argv.slice(2);
process.stdin.resume();
process.stdin.on("close", () => {
  try {
    // SIGQUIT ends the server and its children at once.
    process.kill(Number(pid), "SIGQUIT");
  } catch {
    // It is gone already, as it should be.
  }
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
});
