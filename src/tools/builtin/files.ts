import { z } from "zod";
import { words } from "../../domain/words.ts";
import { shorten } from "../../monikers/extract.ts";
import type { Workspace } from "../../monikers/tools/workspace.ts";
import type { ToolOutcome } from "../tool.ts";
import { LONGEST_RESULT } from "../tool-outputs.ts";
import { toolError } from "../tool-server.ts";
import { ZodToolServer, zodTool } from "../zod-tool-server.ts";

const path = z.string().describe("Relative to the workspace, with or without the prefix /workspace/.");
/** Leaves room for the line that says how to continue. */
const LONGEST_PIECE = LONGEST_RESULT - 500;
const LONGEST_LINE = 500;

const list = zodTool({
  name: "list",
  description: "Lists the files of the workspace, or of a folder in it.",
  input: z.object({ path: path.optional() }),
  read_only: true,
  async run({ path: folder }, { workspace }) {
    const paths = await workspace.list(folder);
    return paths.length > 0 ? paths.join("\n") : "There are no files.";
  },
});

const read = zodTool({
  name: "read",
  description: `Reads a text file of the workspace. Returns at most ${LONGEST_PIECE} characters, from the offset on.`,
  input: z.object({
    path,
    offset: z.int().min(0).optional().describe("The first character to return; 0 is the beginning."),
    length: z.int().min(1).max(LONGEST_PIECE).optional().describe("The most characters to return."),
  }),
  read_only: true,
  async run({ path: file, offset = 0, length = LONGEST_PIECE }, { workspace }) {
    const text = await workspace.read(file);
    const piece = text.slice(offset, offset + length);
    if (offset === 0 && piece.length === text.length) return text;
    const end = offset + piece.length;
    const rest = end < text.length ? `; continue with offset ${end}` : "";
    return `${piece.toWellFormed()}\n[characters ${offset} to ${end} of ${text.length}${rest}]`;
  },
});

const search = zodTool({
  name: "search",
  description: "Finds the lines of all files that contain any of the words, ignoring case and diacritics.",
  input: z.object({ words: z.string().min(1).describe("One or several words.") }),
  read_only: true,
  async run({ words: text }, { workspace }) {
    const passages = await workspace.search(words(text));
    const lines = passages.map((passage) => `${passage.path}:${passage.line}: ${shorten(passage.text, LONGEST_LINE)}`);
    return lines.length > 0 ? lines.join("\n") : "Nothing was found.";
  },
});

const text = z.string().describe("The whole text of the file.");

/** Never loses anything: existing files are left to `overwrite`, which asks people. */
const write = zodTool({
  name: "write",
  description: "Writes a new text file. An existing file is not changed: use files/overwrite or files/edit.",
  input: z.object({ path, text }),
  idempotent: true,
  leaves_no_trace: true,
  async run({ path: file, text: content }, { workspace }): Promise<ToolOutcome | string> {
    // The same text may be there from an aborted attempt.
    if ((await workspace.has(file)) && !(await hasText(workspace, file, content)))
      return toolError(`${file} already exists. files/overwrite replaces it, files/edit changes a part of it.`);
    await workspace.write(file, content);
    return `Wrote ${file}.`;
  },
});

const overwrite = zodTool({
  name: "overwrite",
  description: "Replaces an existing text file, or writes a new one. The old content is lost.",
  input: z.object({ path, text }),
  idempotent: true,
  destructive: true,
  leaves_no_trace: true,
  async run({ path: file, text: content }, { workspace }) {
    await workspace.write(file, content);
    return `Wrote ${file}.`;
  },
});

const edit = zodTool({
  name: "edit",
  description: "Replaces a piece of text in a file. The piece must occur exactly once, unless `all` is set.",
  input: z.object({
    path,
    old_text: z.string().min(1).describe("The piece, exactly as in the file, including line ends and spaces."),
    new_text: z.string().describe("The replacement."),
    all: z.boolean().optional().describe("Replace every occurrence."),
  }),
  destructive: true,
  leaves_no_trace: true,
  async run({ path: file, old_text, new_text, all = false }, { workspace }): Promise<ToolOutcome | string> {
    const pieces = (await workspace.read(file)).split(old_text);
    const count = pieces.length - 1;
    if (count === 0) return toolError(`${file} does not contain that text. Read the file and try again.`);
    if (count > 1 && !all)
      return toolError(`${file} contains that text ${count} times. Give more of the text around it, or set all.`);
    await workspace.write(file, pieces.join(new_text));
    return `Replaced ${count === 1 ? "it" : `${count} occurrences`} in ${file}.`;
  },
});

const hasText = (workspace: Workspace, file: string, content: string): Promise<boolean> =>
  workspace.read(file).then(
    (present) => present === content,
    () => false,
  );

export const filesServer = (): ZodToolServer =>
  new ZodToolServer("files", [list, read, search, write, overwrite, edit]);
