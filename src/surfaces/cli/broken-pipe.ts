let isWatching = false;

/** A reader that has seen enough (`everstep ps | head`) ends the command, quietly. */
export function endWithReader(): void {
  if (isWatching) return;
  isWatching = true;
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      process.exit();
    });
}
