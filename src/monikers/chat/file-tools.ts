import type { JsonObject } from "../../domain/json.ts";
import { words } from "../../domain/words.ts";
import { shorten } from "../extract.ts";
import { StepError } from "../moniker.ts";
import type { Workspace } from "../tools/workspace.ts";

/** A tool's result: a text, or a question that a person must answer first. */
export type ToolResult = { kind: "result"; text: string } | { kind: "question"; text: string };

const LONGEST_RESULT = 20_000;

/** The chat's tools, by name. A refusal is a result too, so that the agent can say so. */
export async function runFileTool(
  workspace: Workspace,
  tool: string,
  args: JsonObject,
  confirmed = false,
): Promise<ToolResult> {
  try {
    return await run(workspace, tool, args, confirmed);
  } catch (error) {
    if (error instanceof StepError && error.code.startsWith("file_")) return result(`Refused: ${error.message}.`);
    throw error;
  }
}

async function run(workspace: Workspace, tool: string, args: JsonObject, confirmed: boolean): Promise<ToolResult> {
  switch (tool) {
    case "list_files": {
      const paths = await workspace.list();
      return result(paths.length > 0 ? paths.join("\n") : "The workspace is empty.");
    }
    case "read_file":
      return result(await workspace.read(textOf(args, "path")));
    case "search_files": {
      const matches = await workspace.search(words(textOf(args, "words")));
      return result(
        matches.length > 0
          ? matches.map(({ path, line, text }) => `${path}:${line}: ${text}`).join("\n")
          : "Nothing was found.",
      );
    }
    case "write_file": {
      const path = textOf(args, "path");
      // Overwriting needs a confirmation; creating does not.
      if (!confirmed && (await workspace.has(path)))
        return { kind: "question", text: `${path} already exists. Shall I overwrite it? (yes or no)` };
      await workspace.write(path, textOf(args, "text"));
      return result(`Wrote ${path}.`);
    }
    default:
      return result(`There is no tool named ${tool}.`);
  }
}

const result = (text: string): ToolResult => ({ kind: "result", text: shorten(text, LONGEST_RESULT) });

function textOf(args: JsonObject, name: string): string {
  const value = args[name];
  if (typeof value === "string") return value;
  throw new StepError("file_arguments", `the tool needs the argument ${name}`, { retryable: false });
}
