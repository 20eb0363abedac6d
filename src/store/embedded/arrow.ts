import { createRequire } from "node:module";

/**
 * Arrow as LanceDB has it, which is the one for `require`. The one for `import` would be a second copy: a quarter of the time that the
 * store's thread takes to start, and schemas that LanceDB does not know as its own.
 */
export const arrow = createRequire(import.meta.url)("apache-arrow") as typeof import("apache-arrow");
