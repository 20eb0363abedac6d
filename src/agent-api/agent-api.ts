import { WebSocket } from "ws";
import { Backoff } from "../concurrency/backoff.ts";
import { redactUrl, redactUrls } from "../domain/redact.ts";
import { type ServerFrame, serverFrameSchema } from "./messages.ts";

const CONNECT_LIMIT_MS = 5000;
const CLOSE_LIMIT_MS = 1000;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5000;

export type AgentApiOptions = {
  /** Receives the frames that belong to no question. */
  callback?: (frame: ServerFrame) => void;
  /** Called when an established connection is lost; it comes back by itself. */
  on_disconnect?: (api: AgentApi) => void;
  /** The server's token, if it requires one. */
  token?: string;
};

/** A question was asked before the previous one was answered. */
export class AgentBusyError extends Error {
  override readonly name = "AgentBusyError";
}

/** The agent, or the connection to it, failed during a question. The fate of the answer is unknown. */
export class AgentApiError extends Error {
  override readonly name = "AgentApiError";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export type SendOptions = {
  /** Stored with the question (`metadata.request_id` of its action), so that its fate can be looked up after a crash. */
  request_id?: string;
  /** The answer starts over: the pieces so far are void. Without this callback such an answer arrives whole once it is complete. */
  on_restart?: () => void;
};

type Question = {
  request_id: string;
  on_restart: (() => void) | undefined;
  frames: ServerFrame[];
  wake: () => void;
  failure: AgentApiError | null;
  /** Whether its caller stopped listening. */
  isAbandoned: boolean;
};

/**
 * One persistent connection to an agent that has one chat.
 *
 * `connect()` resolves when the agent is ready, `sendMessage(text)` yields the answer piece by piece. A lost connection
 * comes back by itself; a question in flight then fails with `AgentApiError` and is never lost silently.
 */
export class AgentApi {
  readonly agent_id: string;
  last_tokens_used = 0;
  /** Null if the agent did not name it. */
  session_id: string | null = null;
  readonly #url: string;
  /** The URL for error messages: without a password and without `?token=`. */
  readonly #place: string;
  readonly #options: AgentApiOptions;
  #socket: WebSocket | null = null;
  #question: Question | null = null;
  /** Whether the agent has said on this connection that it is ready. */
  #isReady = false;
  /** Whether to reconnect: from the first established connection until `close()`. */
  #comesBack = false;
  #retry: NodeJS.Timeout | undefined;
  readonly #backoff = new Backoff(FIRST_RETRY_MS, LONGEST_RETRY_MS);
  #requests = 0;

  constructor(agent_id: string, url: string, options: AgentApiOptions = {}) {
    this.agent_id = agent_id;
    this.#url = url;
    this.#place = redactUrl(url);
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN && this.#isReady;
  }

  /** Whether the agent is working on a question asked here, even one whose caller stopped listening. */
  get isBusy(): boolean {
    return this.#question !== null;
  }

  /** Opens the connection and waits at most five seconds for the agent's `status`. */
  async connect(): Promise<void> {
    if (this.isConnected) return;
    clearTimeout(this.#retry);
    const before = this.#socket;
    const opened = this.#open();
    before?.terminate();
    await opened;
  }

  /** The answer's text as it arrives. */
  sendMessage(
    text: string,
    { request_id = String(++this.#requests), on_restart }: SendOptions = {},
  ): AsyncGenerator<string, void, undefined> {
    if (this.#question) throw new AgentBusyError("the agent is still answering");
    const socket = this.#socket;
    if (!socket || !this.isConnected)
      throw new AgentApiError("disconnected", `there is no connection to ${this.#place}`);
    const question: Question = {
      request_id,
      on_restart,
      frames: [],
      wake() {},
      failure: null,
      isAbandoned: false,
    };
    this.#question = question;
    const accepts = on_restart ? { accepts: ["event_restart"] } : {};
    socket.send(JSON.stringify({ type: "user_message", text, request_id, ...accepts }));
    return this.#answer(question);
  }

  async close(): Promise<void> {
    this.#comesBack = false;
    clearTimeout(this.#retry);
    const socket = this.#socket;
    this.#fail("closed", "the connection was closed");
    if (!socket || socket.readyState === WebSocket.CLOSED) return;
    const timer = setTimeout(() => socket.terminate(), CLOSE_LIMIT_MS);
    await new Promise<void>((resolve) => {
      socket.once("close", () => resolve());
      socket.close();
    });
    clearTimeout(timer);
  }

  async *#answer(question: Question): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        const frame = question.frames.shift();
        if (!frame) {
          if (question.failure) throw question.failure;
          await new Promise<void>((resolve) => {
            question.wake = resolve;
          });
        } else if (frame.type === "event_text_chunk") yield frame.text;
        else if (frame.type === "event_restart") question.on_restart?.();
        else if (frame.type === "event_end") return;
        else if (frame.type === "error") throw new AgentApiError(frame.code, frame.message);
      }
    } finally {
      question.isAbandoned = true;
    }
  }

  async #open(): Promise<void> {
    const headers: Record<string, string> =
      this.#options.token === undefined ? {} : { authorization: `Bearer ${this.#options.token}` };
    const socket = this.#newSocket(headers);
    this.#socket = socket;
    this.session_id = null;
    this.#isReady = false;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(
          new AgentApiError("timeout", `${this.#place} did not say that it is ready within ${CONNECT_LIMIT_MS} ms`),
        );
        socket.terminate();
      }, CONNECT_LIMIT_MS);
      socket.on("message", (data) => {
        const frame = parseFrame((data as Buffer).toString());
        if (!frame) return;
        if (frame.type === "status") {
          clearTimeout(timer);
          this.session_id = frame.session_id ?? null;
          this.#isReady = true;
          this.#backoff.reset();
          this.#comesBack = socket.readyState === WebSocket.OPEN;
          resolve();
        }
        this.#deliver(frame);
      });
      socket.on("error", (error) =>
        reject(new AgentApiError("disconnected", `${this.#place} cannot be reached (${redactUrls(error.message)})`)),
      );
      socket.on("close", () => {
        clearTimeout(timer);
        reject(new AgentApiError("disconnected", `${this.#place} closed the connection`));
        if (this.#socket === socket) this.#lost();
      });
    });
  }

  /** The error for an invalid URL would contain the URL. */
  #newSocket(headers: Record<string, string>): WebSocket {
    try {
      return new WebSocket(this.#url, { headers });
    } catch {
      throw new AgentApiError("disconnected", `${this.#place} is not the URL of a WebSocket`);
    }
  }

  /**
   * The agent is free for the next question once it has ended this one, whether or not the caller read the answer. There is one question
   * at a time, so a frame without a `request_id` belongs to it.
   */
  #deliver(frame: ServerFrame): void {
    const question = this.#question;
    const isAnswer =
      question !== null &&
      frame.type !== "status" &&
      (frame.request_id === undefined || frame.request_id === question.request_id);
    if (!isAnswer) return this.#options.callback?.(frame);
    if (frame.type === "event_end") this.last_tokens_used = frame.tokens_used;
    if (frame.type === "event_end" || frame.type === "error") this.#question = null;
    if (question.isAbandoned) return this.#options.callback?.(frame);
    question.frames.push(frame);
    question.wake();
  }

  #lost(): void {
    const stood = this.#isReady;
    this.session_id = null;
    this.#isReady = false;
    this.#fail("disconnected", "the connection was lost; whether the agent answers is not known");
    if (!this.#comesBack) return;
    if (stood) this.#options.on_disconnect?.(this);
    this.#retry = setTimeout(() => void this.#open().catch(() => {}), this.#backoff.next());
  }

  #fail(code: string, message: string): void {
    const question = this.#question;
    if (!question) return;
    this.#question = null;
    question.failure = new AgentApiError(code, message);
    question.wake();
  }
}

function parseFrame(text: string): ServerFrame | null {
  try {
    const parsed = serverFrameSchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
