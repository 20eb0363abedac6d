import { WebSocket } from "ws";
import { type ServerFrame, serverFrameSchema } from "./messages.ts";

const CONNECT_LIMIT_MS = 5000;
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

type Question = { request_id: string; frames: ServerFrame[]; wake: () => void; failure: AgentApiError | null };

/**
 * One persistent connection to an agent that has one chat.
 *
 * `connect()` resolves when the agent is ready, `sendMessage(text)` gives the answer piece by piece. A connection that is
 * lost comes back by itself; a question that was in flight then fails with `AgentApiError`, it is never lost in silence.
 */
export class AgentApi {
  readonly agent_id: string;
  last_tokens_used = 0;
  session_id: string | null = null;
  readonly #url: string;
  readonly #options: AgentApiOptions;
  #socket: WebSocket | null = null;
  #question: Question | null = null;
  #closed = false;
  #retry: NodeJS.Timeout | undefined;
  #retryMs = FIRST_RETRY_MS;
  #requests = 0;

  constructor(agent_id: string, url: string, options: AgentApiOptions = {}) {
    this.agent_id = agent_id;
    this.#url = url;
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN && this.session_id !== null;
  }

  /** Opens the connection and waits for the agent's `status`, five seconds at the most. */
  async connect(): Promise<void> {
    this.#closed = false;
    await this.#open();
  }

  /** The answer's text as it comes. */
  sendMessage(text: string): AsyncGenerator<string, void, undefined> {
    if (this.#question) throw new AgentBusyError("the agent is still answering");
    const socket = this.#socket;
    if (!socket || !this.isConnected) throw new AgentApiError("disconnected", `there is no connection to ${this.#url}`);
    const question: Question = {
      request_id: `${this.agent_id}-${++this.#requests}`,
      frames: [],
      wake() {},
      failure: null,
    };
    this.#question = question;
    socket.send(JSON.stringify({ type: "user_message", text, request_id: question.request_id }));
    return this.#answer(question);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    const socket = this.#socket;
    this.#fail("closed", "the connection was closed");
    if (!socket || socket.readyState === WebSocket.CLOSED) return;
    await new Promise<void>((resolve) => {
      socket.once("close", () => resolve());
      socket.close();
    });
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
        else if (frame.type === "event_end") {
          this.last_tokens_used = frame.tokens_used;
          return;
        } else if (frame.type === "error") throw new AgentApiError(frame.code, frame.message);
      }
    } finally {
      if (this.#question === question) this.#question = null;
    }
  }

  #open(): Promise<void> {
    const headers = this.#options.token === undefined ? {} : { authorization: `Bearer ${this.#options.token}` };
    const socket = new WebSocket(this.#url, { headers, handshakeTimeout: CONNECT_LIMIT_MS });
    this.#socket = socket;
    this.session_id = null;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new AgentApiError("timeout", `${this.#url} did not say that it is ready within ${CONNECT_LIMIT_MS} ms`));
        socket.terminate();
      }, CONNECT_LIMIT_MS);
      socket.on("message", (data) => {
        const frame = parseFrame((data as Buffer).toString());
        if (!frame) return;
        if (frame.type === "status") {
          clearTimeout(timer);
          this.session_id = frame.session_id;
          this.#retryMs = FIRST_RETRY_MS;
          resolve();
        }
        this.#deliver(frame);
      });
      socket.on("error", (error) =>
        reject(new AgentApiError("disconnected", `${this.#url} cannot be reached (${error.message})`)),
      );
      socket.on("close", () => {
        clearTimeout(timer);
        reject(new AgentApiError("disconnected", `${this.#url} closed the connection`));
        if (this.#socket === socket) this.#lost();
      });
    });
  }

  #deliver(frame: ServerFrame): void {
    const question = this.#question;
    const isAnswer = question !== null && frame.type !== "status" && frame.request_id === question.request_id;
    if (!isAnswer) return this.#options.callback?.(frame);
    question.frames.push(frame);
    question.wake();
  }

  #lost(): void {
    const stood = this.session_id !== null;
    this.session_id = null;
    this.#fail("disconnected", "the connection was lost; whether the agent answers is not known");
    if (this.#closed) return;
    if (stood) this.#options.on_disconnect?.(this);
    this.#retry = setTimeout(() => void this.#open().catch(() => {}), this.#retryMs * (0.5 + Math.random()));
    this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
  }

  #fail(code: string, message: string): void {
    if (!this.#question) return;
    this.#question.failure = new AgentApiError(code, message);
    this.#question.wake();
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
