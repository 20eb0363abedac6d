let isWatching = false;

/** Ends the command quietly when its reader closes the pipe (`everstep ps | head`). */
export function endWithReader(): void {
  if (isWatching) return;
  isWatching = true;
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      process.exit();
    });
}
