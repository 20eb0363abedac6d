import { z } from "zod";

/** The parameter that names the tools a loop moniker may use. */
export const toolGlobs = z
  .array(z.string().min(1).max(500))
  .max(200)
  .optional()
  .describe("Globs over the names of the tools it may use. Default: all.");
