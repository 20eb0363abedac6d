import type { Handler } from "../outcome.ts";

/** The session was written together with the request; from here on it runs. */
export const create: Handler = () => ({ kind: "ok" });
