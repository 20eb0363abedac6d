import { createHash } from "node:crypto";
import { LARGEST_FILE, RUNTIME_FOLDER, type Workspace } from "../monikers/tools/workspace.ts";
import type { ToolOutcome, ToolStep } from "./tool.ts";

/** The longest result that is passed on, in characters; a longer one is stored in a file. */
export const LONGEST_RESULT = 20_000;
/** How much of the end of a truncated result is passed on: errors come last. */
const LONGEST_END = 2000;
/** A unit of a JavaScript string takes up to three bytes. */
const PART_UNITS = Math.floor(LARGEST_FILE / 3);

/**
 * Stores the output of one call in the workspace, where the agent can read it.
 *
 * OUTPUTS-1  A call repeated for the same step writes to the same files: the next attempt replaces everything an aborted one
 *            left.
 */
export class ToolOutputs {
  readonly #workspace: Workspace;
  readonly #ids: ToolStep["ids"];
  readonly #call: { number: number; tool: string };
  #count = 0;

  constructor(workspace: Workspace, ids: ToolStep["ids"], call: { number: number; tool: string }) {
    this.#workspace = workspace;
    this.#ids = ids;
    this.#call = call;
  }

  /** Stores a file and returns its path as agents name it. */
  async keep(content: string | Uint8Array, extension: string): Promise<string> {
    const { session_id, iteration } = this.#ids;
    const folder = `${RUNTIME_FOLDER}/tool-outputs/${fileName(session_id)}`;
    const base = `${folder}/${iteration}.${this.#call.number}-${fileName(this.#call.tool)}`; // OUTPUTS-1
    const number = this.#count++;
    const path = `${base}${number === 0 ? "" : `-${number}`}.${extension}`;
    await this.#workspace.write(path, content);
    return `/workspace/${path}`;
  }

  /** Shortens a result that is too long to its beginning and end, and stores the whole. */
  async bounded(outcome: ToolOutcome): Promise<ToolOutcome> {
    if (outcome.kind !== "result" || outcome.text.length <= LONGEST_RESULT) return outcome;
    const { text } = outcome;
    const paths: string[] = [];
    for (const part of parts(text)) paths.push(await this.keep(part, "txt"));
    const end = text.slice(-LONGEST_END).toWellFormed();
    const note = `[The output has ${text.length} characters; the middle is omitted here. The whole is in ${paths.join(", ")}; files/read reads it from any offset.]`;
    const beginning = text.slice(0, LONGEST_RESULT - LONGEST_END - note.length - 2).toWellFormed();
    return { ...outcome, text: `${beginning}\n${note}\n${end}` };
  }
}

/** Splits a text into as many files as needed, never in the middle of a character. */
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

/** A valid file name, different for different texts. */
function fileName(text: string): string {
  const plain = text.replaceAll(/[^\w.-]+/g, "_").replace(/^\.+/, "_");
  if (plain === text && text.length <= LONGEST_NAME) return text;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return `${plain.slice(0, LONGEST_NAME)}-${digest}`;
}
