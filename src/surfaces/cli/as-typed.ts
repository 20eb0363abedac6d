/** The command this program was started with, so that hints can be typed the same way: `npx` puts it on no path. */
export function asTyped(environment: NodeJS.ProcessEnv = process.env): string {
  const { npm_lifecycle_event: event, npm_lifecycle_script: script } = environment;
  return event === "npx" && /^["']?everstep\b/.test(script ?? "") ? "npx everstep" : "everstep";
}

/** Quotes a word for the shell if necessary. */
export const shellWord = (word: string): string =>
  /^[\p{L}\p{N}@%+=:,./_…-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
