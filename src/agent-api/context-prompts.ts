/** The prompts with which chat surfaces save and load a conversation; the agent writes and reads `contexts/NAME.md`. */
export const savePrompt = (name: string): string =>
  `Summarize our conversation and save to /workspace/contexts/${name}.md. Reply only with: Saved: ${name}`;
/** Replaces what was loaded before. */
export const loadPrompt = (name: string): string =>
  `Load context from /workspace/contexts/${name}.md and use it as background for our conversation. Reply: Loaded: ${name}`;
/** Adds to what was loaded before. */
export const addPrompt = (name: string): string =>
  `Load context from /workspace/contexts/${name}.md and use it as additional background for our conversation. Reply: Loaded: ${name}`;

const SAFE = /^[\p{L}\p{N}][\p{L}\p{N}_-]{0,63}$/u;

/** Null for a safe file name; otherwise the rule. */
export const safeName = (name: string): string | null =>
  SAFE.test(name) ? null : "a name has 1 to 64 letters, digits, - and _, and begins with a letter or a digit";
