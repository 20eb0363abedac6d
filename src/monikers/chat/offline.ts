import type { JsonObject } from "../../domain/json.ts";
import type { LoopState } from "../agent/loop-state.ts";
import { questionWords } from "../tools/line-pieces.ts";
import { quotesFor } from "../tools/quotes.ts";
import type { Workspace } from "../tools/workspace.ts";
import { runFileTool, type ToolResult } from "./file-tools.ts";
import { backgroundText } from "./memory.ts";

export type OfflineAnswer = ToolResult & { tool?: string; args?: JsonObject };

const HELP = `No language model is configured, so I answer from the files of the workspace. You can say:
  list files
  read PATH
  write PATH: TEXT
  search WORDS
or ask a question whose words are in the files. EVERSTEP_MODEL=provider/model gives me a model.`;

const COMMANDS: [pattern: RegExp, tool: string, args: (match: RegExpExecArray) => JsonObject][] = [
  [/^(?:list|show)(?: the)? files[.!]?$/i, "list_files", () => ({})],
  [/^read (?:file )?(\S+)$/i, "read_file", ([, path]) => ({ path: path as string })],
  [
    /^write (?:file )?(\S+?):\s?([\s\S]*)$/i,
    "write_file",
    ([, path, text]) => ({ path: path as string, text: text as string }),
  ],
  [/^(?:search|find)(?: for)? (.+)$/i, "search_files", ([, query]) => ({ words: query as string })],
];

/** An answer without a model: a small grammar for the tools, otherwise quotes from the files and the loaded background. */
export async function answerOffline(message: string, state: LoopState, workspace: Workspace): Promise<OfflineAnswer> {
  const question = message.trim();
  if (/^(?:help|\?)[.!]?$/i.test(question)) return { kind: "result", text: HELP };
  for (const [pattern, tool, toArgs] of COMMANDS) {
    const match = pattern.exec(question);
    if (match) {
      const args = toArgs(match);
      return { ...(await runFileTool(workspace, tool, args)), tool, args };
    }
  }
  return { kind: "result", text: await answerFromFiles(question, state, workspace) };
}

async function answerFromFiles(question: string, state: LoopState, workspace: Workspace): Promise<string> {
  if (questionWords(question).length === 0)
    return `You said: ${question}\n(say "help" to see what I can do without a model)`;
  const quotes = await quotesFor(question, backgroundText(state), workspace);
  return quotes.length > 0
    ? `This is what I know:\n${quotes.join("\n")}`
    : `I know nothing about that. You said: ${question}\n(say "help" to see what I can do without a model)`;
}
