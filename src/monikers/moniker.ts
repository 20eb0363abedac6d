import { z } from "zod";
import type { Message } from "../domain/conversation.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/session.ts";
import type { CallSpan, StepCall } from "../domain/step.ts";
import type { FrameIn, FrameOut } from "../domain/step-frame.ts";
import type { SessionTools } from "../tools/tool.ts";
import type { Llm } from "./llm/llm.ts";

/**
 * A moniker is a task as a step function. It is stateless: everything it knows comes in the frame, and everything it wants to
 * know next time goes out in it. The runner does the rest: order, storage, retries, guidance, limits.
 *
 * - `continuous` runs until someone stops it, `finite` until it says `done`, `reactive` runs a step when guidance arrives.
 * - `params` checks the input of the task; its result is given to every step.
 * - `step` may be called again for the same frame: after a crash, an error, or an interrupt. Only what it returns is stored;
 *   side effects of a failed attempt are not undone.
 * - `step` ends soon after its signal aborts; its result is then ignored.
 */
export interface Moniker<Params = unknown> {
  readonly name: string;
  readonly kind: MonikerKind;
  readonly description: string;
  readonly params: z.ZodType<Params>;
  /** Defaults for this moniker's sessions; they override those of its kind. */
  readonly options?: SessionOptions;
  /** The token of the first step. Default "0". */
  readonly first_step?: string;
  step(frame: FrameIn, context: StepContext<Params>): FrameOut | Promise<FrameOut>;
  /**
   * Converts a state left by another version of the moniker into one for this version. Called before a step if the session's
   * last step ran on another version; `from_version` is null if that version was not recorded. It may be called again.
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
  /** Aborts when the step is interrupted or times out, or its session is destroyed. */
  signal: AbortSignal;
  ids: { agent_id: string; session_id: string; conversation_id: string | null; iteration: number };
  attempt: Attempt;
  /** When the step times out, as an ISO time; absent if nothing limits it. */
  deadline?: string;
  /** The language model; null if none is configured. */
  llm: Llm | null;
  tools: SessionTools;
  /** Other participants' messages in the session's conversation since its last step that called this, oldest first. */
  unread: (limit?: number) => Promise<Message[]>;
  emit: (progress: StepProgress) => void;
  /** The step's trace context, to propagate with outgoing requests; absent if tracing is off. */
  traceparent?: string;
  /** A recorded step is run again for inspection: its result is discarded, so it should avoid side effects. */
  is_rerun?: true;
};

/**
 * Whether this step was started before, and how that ended. Exact for a step marked `once`, even after SIGKILL, power loss and
 * a change of worker; for any other step as far as is known.
 */
export type Attempt = { number: number; after: null | "error" | "interrupt" | "timeout" | "crash" };

/** What a step reports while it runs: partial text, tools used, tokens spent, calls made. */
export type StepProgress =
  | { kind: "delta"; text: string }
  | { kind: "tool"; name: string }
  | {
      kind: "usage";
      tokens: number;
      /** The provider reported no figure. */
      estimated?: boolean;
      cost_usd?: number;
    }
  /** A finished call to a model or tool, for the step's row. It does not count as usage: `usage` does. */
  | { kind: "call"; call: StepCall; span?: CallSpan };

/** Infers the type of the params and erases it for the catalog. */
export const defineMoniker = <Params>(moniker: Moniker<Params>): Moniker => moniker;

/** A step's error that says whether a retry can help. Any other error is retried. */
export class StepError extends Error {
  override readonly name = "StepError";
  readonly code: string;
  readonly retryable: boolean;
  /** A retry before this many milliseconds is useless, if known. */
  readonly retry_after_ms: number | undefined;
  /** Something the step needs is unreachable for a while: retries use up no attempt, for up to `retry.outage_s`. */
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
