import { z } from "zod";

/** The parameter of a moniker of the loop that names the tools it may use. */
export const toolGlobs = z
  .array(z.string().min(1).max(500))
  .max(200)
  .optional()
  .describe("Globs over the names of the tools that it may use; all by default.");
