import { randomBytes } from "node:crypto";
import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FastifyBaseLogger } from "fastify";
import { type RawData, WebSocket, WebSocketServer } from "ws";
import type { z } from "zod";
import { clientFrameSchema, requestSchema, type ServerFrame } from "../../agent-api/messages.ts";
import { bearer, isFromThisMachine } from "../access.ts";
import { parseUrl } from "../parse-url.ts";
import { refuseUpgrade } from "../refuse-upgrade.ts";
import { drained, MOST_BUFFERED, type Reader, SlowReaders } from "../slow-readers.ts";
import type { SocketOptions } from "../socket-options.ts";
import type { TokenCheck } from "../token-check.ts";
import type { DefaultChat } from "./default-chat.ts";
import type { AnswerEvent } from "./growing-answer.ts";
import { WithoutRestarts } from "./without-restarts.ts";

const PATH = "/agent_ws/";
const SOCKET_IO_PATH = "/socket.io/";
const LARGEST_FRAME = 256 * 1024;
const PING_EVERY_MS = 30_000;
/** Milliseconds that an answer waits for a client that does not read: other questions wait behind it. */
const LONGEST_DRAIN_MS = 10_000;
/** Milliseconds that a client has to read why it is dropped. */
const GOODBYE_MS = 5000;
/** The close code for "try again later" (RFC 6455 registry), with the reason beside it. */
const TOO_SLOW = 1013;
/** Bytes, by the protocol. */
const LONGEST_REASON = 123;

/** The WebSocket at `/agent_ws/`: one process, one chat. Upgrades for other paths are left to others. */
export class AgentSocketServer {
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: LARGEST_FRAME });
  readonly #chat: DefaultChat;
  readonly #token: string | undefined;
  readonly #tokenCheck: TokenCheck;
  readonly #log: FastifyBaseLogger;
  readonly #pings: NodeJS.Timeout;
  readonly #slowReaders: SlowReaders;
  /** The last ping of each client until it answers: an unsolicited pong does not match it. */
  readonly #pinged = new WeakMap<WebSocket, string>();
  readonly #stopReset: () => void;

  constructor(
    http: HttpServer,
    chat: DefaultChat,
    { token, token_check, stall_ms }: SocketOptions,
    log: FastifyBaseLogger,
  ) {
    this.#chat = chat;
    this.#slowReaders = new SlowReaders(stall_ms);
    this.#token = token;
    this.#tokenCheck = token_check;
    this.#log = log;
    http.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
    this.#pings = setInterval(() => this.#ping(), PING_EVERY_MS).unref();
    this.#stopReset = chat.onReset((session_id) => {
      for (const client of this.#server.clients) send(client, { type: "status", status: "ready", session_id });
    });
  }

  stop(): void {
    clearInterval(this.#pings);
    this.#slowReaders.stop();
    this.#stopReset();
    for (const client of this.#server.clients) client.close(1001, "the server stops");
    this.#server.close();
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const target = request.url ?? "/";
    // Socket.IO has its own listener, which handles exactly these; nobody else upgrades.
    if (target.startsWith(SOCKET_IO_PATH)) return;
    const url = parseUrl(target, "http://localhost");
    if (!url) return refuseUpgrade(socket, 400);
    if (url.pathname !== PATH && `${url.pathname}/` !== PATH) return refuseUpgrade(socket, 404);
    const token = bearer(request.headers) ?? url.searchParams.get("token") ?? undefined;
    if (this.#token === undefined) {
      if (!isFromThisMachine(request.headers)) return refuseUpgrade(socket, 403);
    } else {
      const verdict = this.#tokenCheck.verdict(token, this.#token, request.socket.remoteAddress);
      if (verdict !== "right") return refuseUpgrade(socket, verdict === "wrong" ? 401 : 429);
    }
    this.#server.handleUpgrade(request, socket, head, (client) => void this.#serve(client));
  }

  async #serve(client: WebSocket): Promise<void> {
    let busy = false;
    const reader = socketReader(client);
    this.#slowReaders.watch(reader);
    const gone = new AbortController();
    client.once("close", () => {
      gone.abort();
      this.#slowReaders.unwatch(reader);
    });
    client.on("pong", (data) => {
      if (data.toString() === this.#pinged.get(client)) this.#pinged.delete(client);
    });
    // A frame that is too large or broken: the connection is closed already, with the reason.
    client.on("error", () => {});
    client.on("message", (data: RawData, isBinary: boolean) => {
      if (!this.#slowReaders.mayAnswer(reader, MOST_BUFFERED)) return;
      const message = isBinary ? null : parse((data as Buffer).toString());
      const frame = message === null ? null : clientFrameSchema.safeParse(message);
      const tagged = message === null ? {} : requestIdOf(message);
      if (!frame?.success)
        return send(client, {
          type: "error",
          code: "bad_message",
          message: 'send {"type":"user_message","text":"…"} as text',
          ...tagged,
        });
      if (busy)
        return send(client, {
          type: "error",
          code: "busy",
          message: "the question before this one is not answered yet",
          ...tagged,
        });
      busy = true;
      void this.#answer({ client, reader, gone: gone.signal }, frame.data, tagged).finally(() => {
        busy = false;
      });
    });
    try {
      send(client, { type: "status", status: "ready", session_id: (await this.#chat.session()).session_id });
    } catch (error) {
      this.#log.error({ err: error }, "the default chat is not available");
      client.close(1011, "the chat is not available");
    }
  }

  async #answer(
    { client, reader, gone }: { client: WebSocket; reader: Reader; gone: AbortSignal },
    { text, accepts }: z.infer<typeof clientFrameSchema>,
    tagged: { request_id?: string },
  ): Promise<void> {
    const old = accepts?.includes("event_restart") ? null : new WithoutRestarts();
    try {
      await this.#chat.ask({ text, user_id: "agent_ws", ...tagged }, async (event) => {
        if (!(await drained(reader, gone, LONGEST_DRAIN_MS))) this.#slowReaders.drop(reader);
        for (const answerEvent of old?.take(event) ?? [event]) send(client, { ...frameOf(answerEvent), ...tagged });
      });
    } catch (error) {
      this.#log.error({ err: error }, "a question could not be answered");
      send(client, { type: "error", code: "agent_error", message: "the question could not be answered", ...tagged });
    }
  }

  #ping(): void {
    for (const client of this.#server.clients) {
      if (this.#pinged.has(client)) client.terminate();
      const nonce = randomBytes(8).toString("hex");
      this.#pinged.set(client, nonce);
      client.ping(nonce);
    }
  }
}

/** Null if it is not a JSON object. Obvious non-JSON is rejected without the cost of an exception: it may come as a flood. */
function parse(text: string): unknown {
  if (!/^\s*\{/.test(text)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The client's id of its request, even if the rest of the frame is unusable. */
function requestIdOf(message: unknown): { request_id?: string } {
  const named = requestSchema.safeParse(message);
  return named.success && named.data.request_id !== undefined ? { request_id: named.data.request_id } : {};
}

function frameOf(event: AnswerEvent): ServerFrame {
  switch (event.kind) {
    case "chunk":
      return { type: "event_text_chunk", text: event.text };
    case "restart":
      return { type: "event_restart" };
    case "end":
      return { type: "event_end", tokens_used: event.tokens_used };
    case "failed":
      return { type: "error", code: "agent_error", message: event.message };
  }
  return event satisfies never;
}

function send(client: WebSocket, frame: ServerFrame): void {
  if (client.readyState === WebSocket.OPEN) client.send(JSON.stringify(frame));
}

function socketReader(client: WebSocket): Reader {
  // The connection is set once the upgrade is done.
  const { _socket: connection } = client as unknown as { _socket: Socket };
  return {
    // Nobody waits for a client that is being dropped.
    buffered: () => (client.readyState === WebSocket.OPEN ? client.bufferedAmount : 0),
    delivered: () => connection.bytesWritten - connection.writableLength,
    drop(reason) {
      client.close(TOO_SLOW, reason.slice(0, LONGEST_REASON));
      // What it keeps sending stays in the network buffers.
      client.pause();
      setTimeout(() => client.terminate(), GOODBYE_MS);
    },
  };
}
