import { z } from "zod";
import { isObject, jsonObjectSchema } from "../../domain/json.ts";
import { type FrameOut, frameOutSchema } from "../../domain/step-frame.ts";
import { StepError, type StepProgress } from "../moniker.ts";
import { BoundedLines, type Buffered, LinesError } from "./bounded-lines.ts";
import { remoteGone, remoteMisbehaved } from "./remote-errors.ts";

const MOST_BYTES = 64 * 1024 * 1024;
const MOST_LINES = 100_000;

const amountSchema = z.number().nonnegative();
/** The kinds of lines, by their one field. */
const LINES = {
  delta: z.string(),
  tool: z.string().min(1).max(500),
  usage: z.object({ tokens: amountSchema.default(0), cost_usd: amountSchema.optional() }),
  frame: frameOutSchema,
  problem: z.object({
    code: z.string().min(1).max(100),
    message: z.string().max(10_000),
    retryable: z.boolean().default(true),
    retry_after_ms: amountSchema.optional(),
  }),
};
type Kind = keyof typeof LINES;
const KINDS = Object.keys(LINES) as Kind[];

type Outcome = { kind: "frame"; frame: FrameOut } | { kind: "problem"; error: StepError };

/**
 * The answer to one step as it arrives: lines of JSON, the last being the frame or a problem.
 *
 * ANSWER-1  Whatever is sent, an answer takes bounded memory and ends after a bounded number of bytes and lines.
 * ANSWER-2  A wrong answer is an error that names the worker; no part of it is used as a frame.
 * ANSWER-3  Nothing follows the frame.
 */
export class StepAnswer {
  readonly #remote: string;
  readonly #emit: (progress: StepProgress) => void;
  readonly #lines: BoundedLines;
  #bytesLeft = MOST_BYTES;
  #linesLeft = MOST_LINES;
  #outcome: Outcome | null = null;

  constructor(remote: string, emit: (progress: StepProgress) => void, buffered: Buffered) {
    this.#remote = remote;
    this.#emit = emit;
    this.#lines = new BoundedLines(buffered);
  }

  get isWhole(): boolean {
    return this.#outcome !== null;
  }

  /** Takes the next bytes; throws if they are wrong. */
  push(chunk: Buffer): void {
    this.#bytesLeft -= chunk.length;
    if (this.#bytesLeft < 0) throw this.#blame(`sent more than ${MOST_BYTES} bytes for one step`); // ANSWER-1
    this.#blaming(() => {
      for (const line of this.#lines.push(chunk)) this.#takeLine(line);
    });
  }

  /** The frame, after the last byte; throws if there is none. */
  finish(): FrameOut {
    // A last line without a newline counts, unless the worker died in the middle of it.
    const rest = this.#blaming(() => this.#lines.end());
    if (rest !== "" && (this.#outcome || isJson(rest))) this.#takeLine(rest);
    const outcome = this.#outcome;
    if (!outcome) throw remoteGone(this.#remote, "ended its answer before the frame");
    if (outcome.kind === "problem") throw outcome.error;
    return outcome.frame;
  }

  /** Frees the buffer, whatever the outcome. */
  drop(): void {
    this.#lines.drop();
  }

  #takeLine(text: string): void {
    if (this.#outcome) throw this.#blame(`sent a line after its frame: ${excerpt(text)}`); // ANSWER-3
    this.#linesLeft--;
    if (this.#linesLeft < 0) throw this.#blame(`sent more than ${MOST_LINES} lines for one step`); // ANSWER-1
    const line = parse(text);
    const kind = isObject(line) ? KINDS.find((name) => Object.hasOwn(line, name)) : undefined;
    if (!isObject(line) || kind === undefined)
      throw this.#blame(`sent a line that is none of ${KINDS.join(", ")}: ${excerpt(text)}`);
    this.#take(kind, line[kind]);
  }

  #take(kind: Kind, value: unknown): void {
    if (kind === "delta") return this.#emit({ kind, text: this.#checked(kind, value) });
    if (kind === "tool") return this.#emit({ kind, name: this.#checked(kind, value) });
    if (kind === "usage") {
      const { tokens, cost_usd } = this.#checked(kind, value);
      return this.#emit({ kind, tokens, ...(cost_usd !== undefined && { cost_usd }) });
    }
    if (kind === "problem") {
      const { code, message, retryable, retry_after_ms } = this.#checked(kind, value);
      this.#outcome = { kind, error: new StepError(code, message, { retryable, retry_after_ms }) };
      return;
    }
    this.#checked(kind, value);
    // Unparsed: the runner checks and copies it.
    this.#outcome = { kind, frame: value as FrameOut };
  }

  /** ANSWER-2. */
  #checked<Name extends Kind>(kind: Name, value: unknown): z.infer<(typeof LINES)[Name]> {
    const parsed = LINES[kind].safeParse(value);
    if (parsed.success) return parsed.data as z.infer<(typeof LINES)[Name]>;
    const [issue] = parsed.error.issues;
    throw this.#blame(`sent a ${kind} that is wrong: ${[kind, ...(issue?.path ?? [])].join(".")}: ${issue?.message}`);
  }

  #blaming<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof LinesError)) throw error;
      throw remoteMisbehaved(this.#remote, error.message, { retryable: error.is_shared, cause: error });
    }
  }

  #blame(why: string): StepError {
    return remoteMisbehaved(this.#remote, why);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isJson = (text: string): boolean => jsonObjectSchema.safeParse(parse(text)).success;

const LONGEST_EXCERPT = 100;
const excerpt = (text: string): string =>
  text.length > LONGEST_EXCERPT ? `${JSON.stringify(text.slice(0, LONGEST_EXCERPT))}…` : JSON.stringify(text);
