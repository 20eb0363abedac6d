import type { ToolGlobs } from "../domain/session.ts";
import { matchesGlob } from "../domain/step-globs.ts";
import type { ToolInfo, ToolPolicy } from "./tool.ts";

/** The order in which a source's lists are checked. */
const LISTS = ["deny", "ask", "run"] as const satisfies ToolPolicy[];

/**
 * What happens when a tool is requested. The first list that matches decides, source by source; by default destructive tools
 * ask.
 */
export function policyOf(
  { name, destructive }: Pick<ToolInfo, "name" | "destructive">,
  ...sources: readonly (ToolGlobs | undefined)[]
): ToolPolicy {
  for (const globs of sources)
    for (const policy of LISTS) if (globs?.[policy]?.some((glob) => matchesGlob(glob, name))) return policy;
  return destructive ? "ask" : "run";
}
