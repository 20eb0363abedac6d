import type { ToolGlobs } from "../domain/session.ts";
import { fitsGlob } from "../domain/step-globs.ts";
import type { ToolInfo, ToolPolicy } from "./tool.ts";

/** The order in which the lists of one source are looked at. */
const LISTS = ["deny", "ask", "run"] as const satisfies ToolPolicy[];

/** What happens when a tool is asked for. The first list that fits decides, source by source; else what may destroy asks. */
export function policyOf(
  { name, destructive }: Pick<ToolInfo, "name" | "destructive">,
  ...sources: readonly (ToolGlobs | undefined)[]
): ToolPolicy {
  for (const globs of sources)
    for (const policy of LISTS) if (globs?.[policy]?.some((glob) => fitsGlob(glob, name))) return policy;
  return destructive ? "ask" : "run";
}
