import {
  isInputRequiredResult,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Tool,
} from "@modelcontextprotocol/client";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { Semaphore } from "../../concurrency/semaphore.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { ServerStatus, ToolOutcome } from "../tool.ts";
import { untilAborted } from "../tool-registry.ts";
import { type ServerTool, type ToolCallContext, type ToolServer, toolError } from "../tool-server.ts";
import { secretMask } from "./mask-secrets.ts";
import type { McpServerConfig } from "./mcp-config.ts";
import { connectMcp, inTrace, type McpConnection } from "./mcp-connection.ts";
import { askForInput, type InputAnswers, takeAnswer } from "./mcp-questions.ts";
import { resultText } from "./mcp-results.ts";
import { SparseLog } from "./sparse-log.ts";

/** The part of a logger that is used. */
export type ToolLog = Record<"info" | "warn" | "debug", (fields: object, message: string) => void>;

/** How long listing tools waits for a server that was just started, in milliseconds. */
const LIST_WAIT_MS = 10_000;
/** Delay before the first reconnect, doubled for each further one, in milliseconds. */
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 60_000;
/** A connection counts as stable after this many milliseconds. */
const STABLE_MS = 10_000;
/** A call does not reconnect within this many milliseconds after a failed attempt. */
const CALL_RETRY_MS = 1000;
const LONGEST_DESCRIPTION = 10_000;

/** What happens during a call. */
type CallNotes = { questions: string[] };

type Definitions = Map<string, { tool: Tool; info: ServerTool; check: ArgumentCheck }>;

type State =
  | { kind: "idle" }
  | { kind: "connecting"; done: Promise<void>; abort: AbortController }
  | { kind: "ready"; connection: McpConnection; since: number }
  | { kind: "waiting"; timer: NodeJS.Timeout; since: number }
  | { kind: "stopped" };

/**
 * An MCP server with a connection that is kept up.
 *
 * It is `idle` until it is started or first used. Then it is `connecting`; `ready`; after a failed attempt or a lost connection
 * `waiting`, with backoff; and `connecting` again. A call does not wait for the backoff: it makes its own attempt. `stopped` is
 * final. `ready` owns the connection, `connecting` the attempt, `waiting` the timer.
 *
 * MCP-1  The tools listed last are offered while the server is away, so that what a model may ask for does not depend on the
 *        moment.
 * MCP-2  A call whose connection was lost or that timed out is an error that says it may have happened. It is repeated only if
 *        it certainly never reached the server.
 * MCP-3  Neither the server's output nor its errors show the secrets of its configuration.
 */
export class McpServer implements ToolServer {
  readonly name: string;
  readonly #config: McpServerConfig;
  readonly #log: ToolLog;
  readonly #serverLog: SparseLog;
  readonly #mask: (text: string) => string;
  readonly #semaphore: Semaphore;
  readonly #running = new Set<CallNotes>();
  #state: State = { kind: "idle" };
  #definitions: Definitions = new Map();
  #error: string | null = null;
  #failures = 0;
  #lastLine = "";

  constructor(config: McpServerConfig, log: ToolLog) {
    this.name = config.name;
    this.#config = config;
    this.#log = log;
    this.#mask = secretMask(config.secrets);
    this.#semaphore = new Semaphore(config.settings.concurrency);
    this.#serverLog = new SparseLog((line, left_out) =>
      log.info({ server: this.name, ...(left_out > 0 && { left_out }) }, line),
    );
  }

  get status(): ServerStatus {
    const { name } = this;
    switch (this.#state.kind) {
      case "ready":
        return { name, status: "ready", error: null };
      case "idle":
      case "connecting":
        return { name, status: this.#error === null ? "connecting" : "failed", error: this.#error };
      case "waiting":
        return { name, status: "failed", error: this.#error };
      case "stopped":
        return { name, status: "stopped", error: null };
    }
    return this.#state satisfies never;
  }

  /** Starts connecting in the background. */
  start(): void {
    void this.#connect();
  }

  /** Closes the connection and ends its process, if any. A second call is harmless. */
  async stop(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: "stopped" };
    if (state.kind === "waiting") clearTimeout(state.timer);
    if (state.kind === "ready") await state.connection.close().catch(() => {});
    if (state.kind === "connecting") {
      state.abort.abort(new Error("the server is stopped"));
      await state.done;
    }
  }

  async tools(): Promise<readonly ServerTool[]> {
    const isNew = this.#error === null && this.#definitions.size === 0;
    if (isNew && (this.#state.kind === "idle" || this.#state.kind === "connecting"))
      await atMost(LIST_WAIT_MS, this.#connect());
    return [...this.#definitions.values()].map(({ info }) => info); // MCP-1
  }

  async call(name: string, args: JsonObject, context: ToolCallContext): Promise<ToolOutcome> {
    const definition = this.#definitions.get(name);
    if (!definition) return toolError(`There is no tool named ${this.name}/${name}.`);
    const { signal } = context;
    const full = `${this.name}/${name}`;
    const resumed = context.answered ? takeAnswer(full, context.answered) : { kind: "answers" as const, answers: {} };
    if (resumed === null) return toolError(`${full} did not ask this question.`);
    if (resumed.kind !== "answers") return resumed;
    const problem = definition.check(args);
    if (problem !== null) return toolError(`The arguments do not fit ${full}: ${problem}`);
    const work = this.#semaphore.run(async () => {
      signal.throwIfAborted();
      return this.#callOnce({ tool: definition.tool, args, answers: resumed.answers, context, is_retry: false });
    });
    return untilAborted(work, signal);
  }

  async #callOnce(call: Call): Promise<ToolOutcome> {
    const { tool, args, answers, context } = call;
    const connection = await this.#connected(context.signal, call.is_retry);
    if (!connection)
      return toolError(`The server ${this.name} is not connected (${this.#error}). The call did not happen.`);
    const notes: CallNotes = { questions: [] };
    this.#running.add(notes);
    try {
      const { outputSchema: _, ...definition } = tool;
      const { traceparent } = context;
      const params = { name: tool.name, arguments: args, ...answers, ...(traceparent && { _meta: { traceparent } }) };
      const options = {
        signal: context.signal,
        timeout: this.#config.settings.call_timeout_s * 1000,
        onprogress() {},
        resetTimeoutOnProgress: true,
        allowInputRequired: true as const,
        // The output schema is not checked: the call has happened, and any result is better than none.
        toolDefinition: definition,
      };
      const result: unknown = await inTrace(traceparent, () => connection.client.callTool(params, options));
      if (isInputRequiredResult(result)) return askForInput(`${this.name}/${tool.name}`, result);
      const { isError = false } = result as { isError?: boolean };
      const text = await resultText(result as never, context.outputs);
      return { kind: "result", text: [text, ...notes.questions].join("\n"), is_error: isError };
    } catch (error) {
      context.signal.throwIfAborted();
      return this.#failedCall(error, call, connection);
    } finally {
      this.#running.delete(notes);
    }
  }

  /** MCP-2. */
  async #failedCall(error: unknown, call: Call, connection: McpConnection): Promise<ToolOutcome> {
    const failure = failureOf(error);
    if (failure === "not_sent" || failure === "broken") this.#lost(connection, this.#describe(error));
    if (failure === "not_sent" && !call.is_retry) return this.#callOnce({ ...call, is_retry: true });
    const full = `${this.name}/${call.tool.name}`;
    switch (failure) {
      case "answered":
        return toolError(`${full} failed: ${this.#describe(error)}`);
      case "not_sent":
        return toolError(
          `The server ${this.name} cannot be reached (${this.#describe(error)}). The call did not happen.`,
        );
      case "late":
        return toolError(
          `The server ${this.name} did not answer within ${this.#config.settings.call_timeout_s} s. The call of ${full} may have happened.`,
        );
      case "broken":
        return toolError(
          `The server ${this.name} disconnected during the call of ${full} (${this.#describe(error)}). The call may have happened.`,
        );
    }
    return failure satisfies never;
  }

  /** The connection; tries to connect if there is none. */
  async #connected(signal: AbortSignal, is_retry: boolean): Promise<McpConnection | null> {
    const { kind } = this.#state;
    const isRecent = !is_retry && this.#state.kind === "waiting" && Date.now() - this.#state.since < CALL_RETRY_MS;
    if (kind !== "ready" && kind !== "stopped" && !isRecent) await untilAborted(this.#connect(), signal);
    return this.#state.kind === "ready" ? this.#state.connection : null;
  }

  #connect(): Promise<void> {
    const state = this.#state;
    if (state.kind === "connecting") return state.done;
    if (state.kind === "ready" || state.kind === "stopped") return Promise.resolve();
    if (state.kind === "waiting") clearTimeout(state.timer);
    const abort = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#state = { kind: "connecting", done, abort };
    void this.#attempt(abort).finally(resolve);
    return done;
  }

  async #attempt(abort: AbortController): Promise<void> {
    const { connect_timeout_s } = this.#config.settings;
    const timer = setTimeout(
      () => abort.abort(new Error(`it took longer than ${connect_timeout_s} s`)),
      connect_timeout_s * 1000,
    );
    let connection: McpConnection | undefined;
    try {
      connection = await connectMcp(
        this.#config,
        this.#events(() => connection),
        abort.signal,
      );
      if (abort.signal.aborted) throw abort.signal.reason;
      this.#ready(connection);
    } catch (error) {
      await connection?.close().catch(() => {});
      this.#failed(this.#describe(abort.signal.aborted ? abort.signal.reason : error));
    } finally {
      clearTimeout(timer);
    }
  }

  #events(connection: () => McpConnection | undefined) {
    return {
      onLog: (line: string) => {
        this.#lastLine = this.#mask(line);
        this.#serverLog.write(this.#lastLine);
      },
      onTrouble: (error: Error) => this.#serverLog.write(`sent something invalid: ${this.#describe(error)}`),
      onTools: (tools: Tool[]) => this.#setTools(tools),
      onClosed: (why: string) => {
        const closed = connection();
        if (closed) this.#lost(closed, this.#describe(why));
      },
      onQuestion: (message: string) => {
        const note = `[While this ran, the server asked a person: ${JSON.stringify(message)}. Nobody can be asked during a call, so the question was cancelled.]`;
        for (const notes of this.#running) notes.questions.push(note);
      },
    };
  }

  #ready(connection: McpConnection): void {
    this.#setTools(connection.tools);
    this.#state = { kind: "ready", connection, since: Date.now() };
    this.#error = null;
    const revision = connection.client.getNegotiatedProtocolVersion();
    const { pid } = connection;
    this.#log.info({ server: this.name, tools: this.#definitions.size, revision, pid }, "tool server connected");
    // It may have ended since its last response.
    if (connection.client.transport === undefined) this.#lost(connection, "it ended");
  }

  #lost(connection: McpConnection, why: string): void {
    if (this.#state.kind !== "ready" || this.#state.connection !== connection) return;
    if (Date.now() - this.#state.since >= STABLE_MS) this.#failures = 0;
    void connection.close().catch(() => {});
    this.#failed(why);
  }

  #failed(why: string): void {
    if (this.#state.kind === "stopped") return;
    const isKnown = this.#error === why;
    this.#error = why;
    const delay_ms = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS);
    this.#failures += 1;
    const timer = setTimeout(() => void this.#connect(), delay_ms);
    timer.unref();
    this.#state = { kind: "waiting", timer, since: Date.now() };
    const fields = { server: this.name, reason: why, again_in_ms: delay_ms };
    this.#log[isKnown ? "debug" : "warn"](fields, "tool server not connected");
  }

  #setTools(tools: readonly Tool[]): void {
    const definitions: Definitions = new Map();
    for (const tool of tools) {
      if (definitions.has(tool.name))
        this.#log.warn(
          { server: this.name, tool: tool.name },
          "a server has two tools with the same name; the first is used",
        );
      else
        definitions.set(tool.name, { tool, info: infoOf(tool), check: argumentCheck(tool.inputSchema as JsonObject) });
    }
    this.#definitions = definitions;
  }

  /** MCP-3. */
  #describe(error: unknown): string {
    const { message, cause } = error instanceof Error ? error : { message: String(error), cause: undefined };
    const why = cause instanceof Error ? `${message}: ${cause.message}` : message;
    const isSilent = /connection closed|closed during|it ended/i.test(why) && this.#lastLine !== "";
    return this.#mask(isSilent ? `${why}; its last output: ${this.#lastLine}` : why).slice(0, 1000);
  }
}

type Call = { tool: Tool; args: JsonObject; answers: InputAnswers; context: ToolCallContext; is_retry: boolean };

function infoOf({ name, title, description, inputSchema, annotations = {} }: Tool): ServerTool {
  const read_only = annotations.readOnlyHint === true;
  return {
    name,
    description: (description ?? title ?? "").slice(0, LONGEST_DESCRIPTION),
    input_schema: inputSchema as JsonObject,
    read_only,
    idempotent: annotations.idempotentHint === true,
    // Only if the server says so: by the protocol's default every tool that writes would count as destructive.
    destructive: annotations.destructiveHint === true,
  };
}

/** What is wrong with the arguments; null if they fit. */
type ArgumentCheck = (args: JsonObject) => string | null;

/** Compiled on first use. A schema that cannot be compiled is left to the server, which checks as well. */
function argumentCheck(schema: JsonObject): ArgumentCheck {
  let check: ArgumentCheck | undefined;
  return (args) => {
    check ??= compiled(schema);
    return check(args);
  };
}

function compiled(schema: JsonObject): ArgumentCheck {
  try {
    const validate = new AjvJsonSchemaValidator().getValidator(schema);
    return (args) => {
      const { valid, errorMessage } = validate(args);
      return valid ? null : (errorMessage ?? "they do not fit the schema");
    };
  } catch {
    return () => null;
  }
}

/**
 * Whether the server received the call: it answered; certainly not; perhaps, but it timed out; perhaps, but the connection
 * broke.
 */
function failureOf(error: unknown): "answered" | "not_sent" | "late" | "broken" {
  if (error instanceof SdkHttpError) return httpFailure(error);
  if (error instanceof ProtocolError) return "answered";
  if (!(error instanceof SdkError))
    return hasCode(error, "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN") ? "not_sent" : "broken";
  if (error.code === SdkErrorCode.RequestTimeout) return "late";
  if (error.code === SdkErrorCode.NotConnected) return "not_sent";
  return error.code === SdkErrorCode.ConnectionClosed || error.code === SdkErrorCode.SendFailed ? "broken" : "answered";
}

/** A server that no longer knows the session did nothing. A gateway's errors say nothing about the server behind it. */
function httpFailure({ status, message }: SdkHttpError): "answered" | "not_sent" | "broken" {
  if (status === 404 || (status === 400 && /session id/i.test(message))) return "not_sent";
  return status >= 502 && status <= 504 ? "broken" : "answered";
}

function hasCode(error: unknown, ...codes: string[]): boolean {
  for (let next: unknown = error; next instanceof Error; next = next.cause)
    if ("code" in next && codes.includes(String(next.code))) return true;
  return false;
}

async function atMost(ms: number, promise: Promise<void>): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, ms);
  await Promise.race([promise, limit.promise]);
  clearTimeout(timer);
}
