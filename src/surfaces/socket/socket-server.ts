import type { Server as HttpServer } from "node:http";
import type { FastifyBaseLogger } from "fastify";
import { Server, type Socket } from "socket.io";
import { z } from "zod";
import { TurnBatch } from "../../concurrency/turn-batch.ts";
import { EverstepError } from "../../domain/errors.ts";
import { idSchema } from "../../domain/ids.ts";
import type { Events } from "../../events/events.ts";
import { type NamedEvent, namedEvents } from "../../events/named-events.ts";
import { ReaderBudget } from "../../store/follow.ts";
import { isFromThisMachine } from "../access.ts";
import { drained, type Reader, SlowReaders } from "../slow-readers.ts";
import type { SocketOptions } from "../socket-options.ts";
import { followSummaries } from "./follow-summaries.ts";
import { socketReader } from "./socket-reader.ts";

const topicSchema = z.union([
  z.strictObject({ session_id: idSchema, after_iteration: z.int().min(-1).optional() }),
  z.strictObject({ conversation_id: idSchema, after: z.string().max(200).optional() }),
  z.strictObject({ all: z.literal(true) }),
  z.strictObject({ summaries: z.literal(true) }),
]);
type RequestedTopic = z.infer<typeof topicSchema>;

const MOST_SUBSCRIPTIONS = 1000;
/** How long a new client may take to send its token, if one is needed, in milliseconds. */
const CONNECT_MS = 10_000;

/** An event and the subscription that it belongs to. */
type SubscribedEvent = NamedEvent & { signal: AbortSignal };
/** A connected client, the buffer budget of all its subscriptions, and what it is about to get. */
type Client = { socket: Socket; reader: Reader; budget: ReaderBudget; waiting: TurnBatch<SubscribedEvent> };

/**
 * Rows and deltas for browsers and programs. Each subscription reads from its own cursor at the client's pace: a slow client's
 * events wait as rows in the store, not in the server's memory.
 */
export class SocketServer {
  readonly #io: Server;
  readonly #events: Events;
  readonly #log: FastifyBaseLogger;
  readonly #slowReaders: SlowReaders;

  constructor(
    http: HttpServer,
    events: Events,
    { token, token_check, stall_ms }: SocketOptions,
    log: FastifyBaseLogger,
  ) {
    this.#events = events;
    this.#log = log;
    this.#slowReaders = new SlowReaders(stall_ms);
    this.#io = new Server(http, {
      path: "/socket.io",
      destroyUpgrade: false,
      serveClient: false,
      connectTimeout: CONNECT_MS,
      maxHttpBufferSize: 64 * 1024,
      allowRequest: ({ headers }, decide) => decide(null, token !== undefined || isFromThisMachine(headers)),
    });
    this.#io.use((socket, next) => {
      const candidate: unknown = socket.handshake.auth["token"];
      const { remoteAddress } = socket.request.socket;
      const verdict =
        token === undefined
          ? "right"
          : token_check.verdict(typeof candidate === "string" ? candidate : undefined, token, remoteAddress);
      if (verdict === "right") return next();
      const [status, reason] =
        verdict === "wrong"
          ? [401, "a token is needed: auth: {token}"]
          : [429, "too many wrong tokens; try again in a minute"];
      next(Object.assign(new Error(reason), { data: { status } }));
    });
    this.#io.on("connection", (socket) => this.#serve(socket));
  }

  /** Disconnects its clients. It also closes the HTTP server, whose owner waits for that. */
  stop(): void {
    this.#slowReaders.stop();
    void this.#io.close();
  }

  #serve(socket: Socket): void {
    const reader = socketReader(socket);
    const client = {
      socket,
      reader,
      budget: new ReaderBudget(() => this.#slowReaders.drop(reader)),
      waiting: new TurnBatch<SubscribedEvent>((events) => this.#emitAll(socket, events)),
    };
    this.#slowReaders.watch(reader);
    socket.use((_packet, next) => {
      if (this.#slowReaders.mayAnswer(reader)) next();
    });
    const subscriptions = new Map<string, AbortController>();
    const answer = (acknowledge: unknown, reply: { ok: true } | { ok: false; error: string }) => {
      if (typeof acknowledge === "function") acknowledge(reply);
    };
    socket.on("subscribe", (request: unknown, acknowledge: unknown) => {
      const topic = topicSchema.safeParse(request);
      if (!topic.success)
        return answer(acknowledge, {
          ok: false,
          error: "give {session_id}, {conversation_id}, {all: true} or {summaries: true}",
        });
      if (subscriptions.size >= MOST_SUBSCRIPTIONS)
        return answer(acknowledge, { ok: false, error: "too many subscriptions" });
      const key = keyOf(topic.data);
      subscriptions.get(key)?.abort();
      const ending = new AbortController();
      subscriptions.set(key, ending);
      this.#follow(client, topic.data, ending.signal).catch((error: unknown) => {
        if (isTooSlow(error)) return this.#slowReaders.drop(reader);
        this.#log.error({ err: error }, "a subscription failed");
        socket.disconnect(true);
      });
      answer(acknowledge, { ok: true });
    });
    socket.on("unsubscribe", (request: unknown, acknowledge: unknown) => {
      const topic = topicSchema.safeParse(request);
      const key = topic.success ? keyOf(topic.data) : "";
      subscriptions.get(key)?.abort();
      answer(
        acknowledge,
        subscriptions.delete(key) ? { ok: true } : { ok: false, error: "there is no such subscription" },
      );
    });
    socket.on("disconnect", () => {
      this.#slowReaders.unwatch(reader);
      for (const ending of subscriptions.values()) ending.abort();
    });
  }

  async #follow(client: Client, topic: RequestedTopic, signal: AbortSignal): Promise<void> {
    const { reader, budget, waiting } = client;
    if ("summaries" in topic) return followSummaries(this.#events, client, signal);
    for await (const event of this.#events.follow(topic, signal, budget)) {
      await drained(reader, signal);
      if (signal.aborted) return;
      // A session makes its next call before its readers are served.
      for (const named of namedEvents(topic, event)) waiting.add({ ...named, signal });
    }
  }

  #emitAll(socket: Socket, events: readonly SubscribedEvent[]): void {
    try {
      for (const { name, payload, signal } of events) if (!signal.aborted) socket.emit(name, payload);
    } catch (error) {
      this.#log.error({ err: error }, "an event could not be sent");
      socket.disconnect(true);
    }
  }
}

const isTooSlow = (error: unknown): boolean => error instanceof EverstepError && error.code === "reader_too_slow";

const keyOf = (topic: RequestedTopic): string =>
  "session_id" in topic
    ? `session:${topic.session_id}`
    : "conversation_id" in topic
      ? `conversation:${topic.conversation_id}`
      : "summaries" in topic
        ? "summaries"
        : "all";
