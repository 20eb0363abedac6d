import { rmSync } from "node:fs";

// Outlives a killed test process: when the pipe to it breaks, this ends the database server.
const [pid, folder] = process.argv.slice(2);
process.stdin.resume();
process.stdin.on("close", () => {
  try {
    // SIGQUIT ends the server and its children at once.
    process.kill(Number(pid), "SIGQUIT");
  } catch {
    // It has already ended, as it should.
  }
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
});
