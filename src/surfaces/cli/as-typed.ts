/** How this program was called, so that a hint can be typed the same way: `npx` puts it on no path. */
export function asTyped(environment: NodeJS.ProcessEnv = process.env): string {
  const { npm_lifecycle_event: event, npm_lifecycle_script: script } = environment;
  return event === "npx" && /^["']?everstep\b/.test(script ?? "") ? "npx everstep" : "everstep";
}

/** A word that a shell takes as one, whatever is in it. */
export const shellWord = (word: string): string =>
  /^[\p{L}\p{N}@%+=:,./_…-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
