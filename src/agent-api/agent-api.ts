import { WebSocket } from "ws";
import { redactUrl, redactUrls } from "../domain/redact.ts";
import { type ServerFrame, serverFrameSchema } from "./messages.ts";

const CONNECT_LIMIT_MS = 5000;
const CLOSE_LIMIT_MS = 1000;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5000;

export type AgentApiOptions = {
  /** Gets the frames that belong to no question. */
  callback?: (frame: ServerFrame) => void;
  /** Called when a connection that stood is lost; it comes back by itself. */
  on_disconnect?: (api: AgentApi) => void;
  /** The server's token, where it wants one. */
  token?: string;
};

/** A question was asked while another one was not answered yet. */
export class AgentBusyError extends Error {
  override readonly name = "AgentBusyError";
}

/** The agent, or the way to it, failed in the middle of a question. Nothing is known of its answer. */
export class AgentApiError extends Error {
  override readonly name = "AgentApiError";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export type SendOptions = {
  /** Kept with the question (`metadata.request_id` of its action), so that what became of it can be looked up after a crash. */
  request_id?: string;
  /** The answer begins anew: the pieces so far do not count. Without it, an answer that does so comes whole once it is complete. */
  on_restart?: () => void;
};

type Question = {
  request_id: string;
  on_restart: (() => void) | undefined;
  frames: ServerFrame[];
  wake: () => void;
  failure: AgentApiError | null;
  /** Whether its asker stopped listening. */
  isAbandoned: boolean;
};

/**
 * One persistent connection to an agent that has one chat.
 *
 * `connect()` resolves when the agent is ready, `sendMessage(text)` gives the answer piece by piece. A connection that is
 * lost comes back by itself; a question that was in flight then fails with `AgentApiError`, it is never lost in silence.
 */
export class AgentApi {
  readonly agent_id: string;
  last_tokens_used = 0;
  /** Null where the agent did not name it. */
  session_id: string | null = null;
  readonly #url: string;
  /** The URL as errors name it: without a user's password and without `?token=`. */
  readonly #place: string;
  readonly #options: AgentApiOptions;
  #socket: WebSocket | null = null;
  #question: Question | null = null;
  /** Whether the agent said on this connection that it is ready. */
  #isReady = false;
  /** Whether a connection that is lost is to come back: once it stood, until it is closed. */
  #comesBack = false;
  #retry: NodeJS.Timeout | undefined;
  #retryMs = FIRST_RETRY_MS;
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

  /** Whether the agent is at work on a question that was asked here, also one whose asker stopped listening. */
  get isBusy(): boolean {
    return this.#question !== null;
  }

  /** Opens the connection and waits for the agent's `status`, five seconds at the most. */
  async connect(): Promise<void> {
    if (this.isConnected) return;
    clearTimeout(this.#retry);
    const before = this.#socket;
    const opened = this.#open();
    before?.terminate();
    await opened;
  }

  /** The answer's text as it comes. */
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
          this.#retryMs = FIRST_RETRY_MS;
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

  /** What it says of a URL that is none has the URL in it. */
  #newSocket(headers: Record<string, string>): WebSocket {
    try {
      return new WebSocket(this.#url, { headers });
    } catch {
      throw new AgentApiError("disconnected", `${this.#place} is not the URL of a WebSocket`);
    }
  }

  /**
   * The agent is free for the next question once it ended this one, whether or not the asker read the answer. There is one question
   * at a time, so a frame that names none is about it.
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
    this.#retry = setTimeout(() => void this.#open().catch(() => {}), this.#retryMs * (0.5 + Math.random()));
    this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
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
