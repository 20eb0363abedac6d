import { z } from "zod";
import type { Message } from "../domain/conversation.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/session.ts";
import type { CallSpan, StepCall } from "../domain/step.ts";
import type { FrameIn, FrameOut } from "../domain/step-frame.ts";
import type { SessionTools } from "../tools/tool.ts";
import type { Llm } from "./llm/llm.ts";

/**
 * A moniker is a task as a step function. It is stateless: all that it knows comes in the frame, all that it wants to
 * know next time goes out in it. The runner does the rest: order, storage, retries, guidance, limits.
 *
 * - `continuous` goes on until someone stops it, `finite` until it says `done`, `reactive` runs a step when guidance arrives.
 * - `params` checks the input of the task; what it returns is given to every step.
 * - `step` may be called again for the same frame: after a crash, an error, or an interrupt that would not wait. What was
 *   not returned did not happen.
 * - `step` ends soon after its signal aborts; what it returns then is not used.
 */
export interface Moniker<Params = unknown> {
  readonly name: string;
  readonly kind: MonikerKind;
  readonly description: string;
  readonly params: z.ZodType<Params>;
  /** Defaults for sessions of this moniker, over those of its kind. */
  readonly options?: SessionOptions;
  /** The token of the first step. "0" by default. */
  readonly first_step?: string;
  step(frame: FrameIn, context: StepContext<Params>): FrameOut | Promise<FrameOut>;
  /**
   * Makes the state that another version of the moniker left into one that this version takes. It is called before a step whose
   * session's last step was made by another version; null where that one's version was not recorded. It may be called again.
   */
  migrate?(state: JsonObject, from_version: string | null): JsonObject | Promise<JsonObject>;
}

export const monikerKindSchema = z.enum(["continuous", "finite", "reactive"]);
export type MonikerKind = z.infer<typeof monikerKindSchema>;
export const monikerNameSchema = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,62}$/, "is lower-case letters, digits, - and _, at most 63");

export type StepContext<Params = unknown> = {
  params: Params;
  /** Aborts when the step is interrupted, timed out or its session destroyed. */
  signal: AbortSignal;
  ids: { agent_id: string; session_id: string; conversation_id: string | null; iteration: number };
  attempt: Attempt;
  /** When the step is cut short, as an ISO time; absent where nothing limits it. */
  deadline?: string;
  /** The language model; null where none is configured. */
  llm: Llm | null;
  tools: SessionTools;
  /** Others' messages in the session's conversation since its last step that asked, oldest first. */
  unread: (limit?: number) => Promise<Message[]>;
  emit: (news: StepNews) => void;
  /** The step's place in a trace, to be sent along with requests to others; absent where nothing is traced. */
  traceparent?: string;
  /** A recorded step runs once more to be looked at: nothing that it returns is kept, so it should not act on the world. */
  is_rerun?: true;
};

/**
 * Whether this very step was begun before, and how that ended. For a step marked `once` it is exact, also after SIGKILL, loss of
 * power and a change of worker; for any other it is what is known.
 */
export type Attempt = { number: number; after: null | "error" | "interrupt" | "timeout" | "crash" };

/** What a step tells while it runs: text as it grows, tools that it uses, tokens that it spent, calls that it made. */
export type StepNews =
  | { kind: "delta"; text: string }
  | { kind: "tool"; name: string }
  | {
      kind: "usage";
      tokens: number;
      /** Where the provider gave no figure. */
      estimated?: boolean;
      cost_usd?: number;
    }
  /** A call of a model or a tool that is over, for the step's row. It adds nothing to what the step used: `usage` does. */
  | { kind: "call"; call: StepCall; span?: CallSpan };

/** Keeps the parameters' type while a moniker is written, and makes it fit the catalog. */
export const defineMoniker = <Params>(moniker: Moniker<Params>): Moniker => moniker;

/** An error of a step that says whether trying again can help. Any other error is tried again. */
export class StepError extends Error {
  override readonly name = "StepError";
  readonly code: string;
  readonly retryable: boolean;
  /** Milliseconds before which another try is useless, where that is known. */
  readonly retry_after_ms: number | undefined;
  /** Something that the step needs is out of reach for a while: trying again uses up no attempt, for as long as `retry.outage_s`. */
  readonly outage: boolean;

  constructor(
    code: string,
    message: string,
    options: { retryable: boolean; retry_after_ms?: number | undefined; outage?: boolean; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable;
    this.retry_after_ms = options.retry_after_ms;
    this.outage = options.outage ?? false;
  }
}
