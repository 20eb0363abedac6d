import { createHash } from "node:crypto";
import { LARGEST_FILE, RUNTIME_FOLDER, type Workspace } from "../monikers/tools/workspace.ts";
import type { ToolOutcome, ToolStep } from "./tool.ts";

/** Characters of a result that are handed on; more is kept in a file. */
export const LONGEST_RESULT = 20_000;
/** Of a result that is cut, how many characters of its end are handed on: errors are told last. */
const LONGEST_END = 2000;
/** A character takes up to three bytes for each unit of a JavaScript string. */
const PART_UNITS = Math.floor(LARGEST_FILE / 3);

/**
 * Where the output of one call is kept: in the workspace, so that the agent can read it.
 *
 * OUTPUTS-1  A call that is made again for the same step writes to the same files: a step that was cut short leaves nothing behind
 *            that the next attempt does not replace.
 */
export class ToolOutputs {
  readonly #workspace: Workspace;
  readonly #base: string;
  #count = 0;

  constructor(
    workspace: Workspace,
    { session_id, iteration }: ToolStep["ids"],
    call: { number: number; tool: string },
  ) {
    this.#workspace = workspace;
    const folder = `${RUNTIME_FOLDER}/tool-outputs/${fileName(session_id)}`;
    this.#base = `${folder}/${iteration}.${call.number}-${fileName(call.tool)}`; // OUTPUTS-1
  }

  /** Keeps a file, and answers its path as agents name it. */
  async keep(content: string | Uint8Array, extension: string): Promise<string> {
    const number = this.#count++;
    const path = `${this.#base}${number === 0 ? "" : `-${number}`}.${extension}`;
    await this.#workspace.write(path, content);
    return `/workspace/${path}`;
  }

  /** A result that can be handed on: of one that is too long the beginning and the end, and where it is kept whole. */
  async bounded(outcome: ToolOutcome): Promise<ToolOutcome> {
    if (outcome.kind !== "result" || outcome.text.length <= LONGEST_RESULT) return outcome;
    const { text } = outcome;
    const paths: string[] = [];
    for (const part of parts(text)) paths.push(await this.keep(part, "txt"));
    const end = text.slice(-LONGEST_END).toWellFormed();
    const note = `[The output has ${text.length} characters; the middle is left out here. It is kept whole in ${paths.join(", ")}; files/read reads it from any offset.]`;
    const beginning = text.slice(0, LONGEST_RESULT - LONGEST_END - note.length - 2).toWellFormed();
    return { ...outcome, text: `${beginning}\n${note}\n${end}` };
  }
}

/** As many parts as files are needed, none of which begins with half a character. */
function* parts(text: string): Generator<string, void, undefined> {
  for (let from = 0; from < text.length; ) {
    const to = from + PART_UNITS;
    const isSplit = to < text.length && /[\ud800-\udbff]/.test(text.charAt(to - 1));
    const next = isSplit ? to - 1 : to;
    yield text.slice(from, next);
    from = next;
  }
}

const LONGEST_NAME = 80;

/** A name that can be a file's, different for different texts. */
function fileName(text: string): string {
  const plain = text.replaceAll(/[^\w.-]+/g, "_").replace(/^\.+/, "_");
  if (plain === text && text.length <= LONGEST_NAME) return text;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return `${plain.slice(0, LONGEST_NAME)}-${digest}`;
}
