import type { Handler } from "../outcome.ts";

/** Like a creation: the new session, with its parent's state and the guidance for its first step, is there already. */
export const fork: Handler = () => ({ kind: "ok" });
