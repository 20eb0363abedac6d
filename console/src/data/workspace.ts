import { useQuery } from "@tanstack/react-query";
import { tryTool } from "./tools.ts";

/** The most pieces of a file that are read. */
const MOST_PIECES = 10;
/** The last line of a partial answer of `files/read`. */
const REST = /\n\[characters \d+ to \d+ of \d+(?:; continue with offset (\d+))?\]$/;

/** The content of a workspace file; null if it does not exist or cannot be read completely. */
export const useWorkspaceFile = (path: string | null) =>
  useQuery({
    queryKey: ["workspace", path],
    enabled: path !== null,
    // Somebody decides by it, so it must be current.
    staleTime: 0,
    gcTime: 0,
    retry: false,
    queryFn: () => readFile(path ?? ""),
  });

async function readFile(path: string): Promise<string | null> {
  let text = "";
  for (let piece = 0, offset = 0; piece < MOST_PIECES; piece++) {
    const answer = await tryTool("files/read", { path, offset });
    if (answer.kind !== "result" || answer.is_error) return null;
    const rest = REST.exec(answer.text);
    text += rest ? answer.text.slice(0, rest.index) : answer.text;
    if (rest?.[1] === undefined) return text;
    offset = Number(rest[1]);
  }
  return null;
}
