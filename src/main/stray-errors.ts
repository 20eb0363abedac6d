import type { Logger } from "pino";

type StrayOrigin = "uncaughtException" | "unhandledRejection";
/** Returns whether it handled the error. */
type StrayHandler = (error: unknown, origin: StrayOrigin) => boolean;

/**
 * Handles errors that nobody caught.
 *
 * STRAY-1  An error of a connection only ends that connection: surfaces hold no state that others depend on.
 * STRAY-2  An error that a handler claims (a step's, say) is left to the handler.
 * STRAY-3  After any other error the process is in an unknown state: it is logged with its origin and the running steps, and
 *          the process stops.
 */
export class StrayErrors {
  readonly #log: Logger;
  readonly #running: () => unknown;
  readonly #handlers = new Set<StrayHandler>();
  readonly #fatal = Promise.withResolvers<void>();

  /** `running` returns the running steps, for the log. */
  constructor(log: Logger, running: () => unknown = () => []) {
    this.#log = log;
    this.#running = running;
    process.on("uncaughtException", (error) => this.#handle(error, "uncaughtException"));
    process.on("unhandledRejection", (error) => this.#handle(error, "unhandledRejection"));
  }

  /** Resolves at the first error after which the process must stop. */
  get fatal(): Promise<void> {
    return this.#fatal.promise;
  }

  /** Handlers are called in the asynchronous context of the failure. */
  onStray(handler: StrayHandler): void {
    this.#handlers.add(handler);
  }

  #handle(error: unknown, origin: StrayOrigin): void {
    if ([...this.#handlers].some((handler) => handler(error, origin))) return;
    if (isOfConnection(error)) return this.#log.error({ err: error, origin }, "a connection failed");
    this.#log.fatal({ err: error, origin, running_steps: this.#running() }, "an uncaught error; the process stops");
    this.#fatal.resolve();
  }
}

const LOST_CONNECTION = new Set([
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ENOTCONN",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_STREAM_WRITE_AFTER_END",
]);
/** Code that works on one connection: our surfaces and the packages beneath them. */
const CONNECTION_CODE =
  /\/src\/surfaces\/(?:http|socket|agent-ws)\/|\/node_modules\/(?:ws|engine\.io|engine\.io-parser|socket\.io|socket\.io-parser|socket\.io-adapter|fastify)\//;

/** Whether a connection was lost, or code that works on one connection threw. */
function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (LOST_CONNECTION.has((error as NodeJS.ErrnoException).code ?? "")) return true;
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  const thrower = frames.find((frame) => !/\(node:|at node:|<anonymous>/.test(frame)) ?? "";
  return CONNECTION_CODE.test(thrower);
}
