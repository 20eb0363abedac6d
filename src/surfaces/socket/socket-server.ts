import type { Server as HttpServer } from "node:http";
import type { FastifyBaseLogger } from "fastify";
import { Server, type Socket } from "socket.io";
import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import type { Events, RuntimeEvent } from "../../events/events.ts";
import type { Topic } from "../../store/store.ts";
import { isFromThisMachine, sameSecret } from "../access.ts";
import { drained } from "./drained.ts";
import { followSummaries } from "./follow-summaries.ts";

const topicSchema = z.union([
  z.strictObject({ session_id: idSchema, after_iteration: z.int().min(-1).optional() }),
  z.strictObject({ conversation_id: idSchema, after: z.string().max(200).optional() }),
  z.strictObject({ all: z.literal(true) }),
  z.strictObject({ summaries: z.literal(true) }),
]);
type Wanted = z.infer<typeof topicSchema>;

const MOST_SUBSCRIPTIONS = 1000;

/**
 * Rows and deltas for browsers and programs. Each subscription reads from its own cursor at the client's pace: a client
 * that does not keep up waits in the store's rows, not in the server's memory.
 */
export class SocketServer {
  readonly #io: Server;
  readonly #events: Events;
  readonly #log: FastifyBaseLogger;

  constructor(http: HttpServer, events: Events, token: string | undefined, log: FastifyBaseLogger) {
    this.#events = events;
    this.#log = log;
    this.#io = new Server(http, {
      path: "/socket.io",
      destroyUpgrade: false,
      serveClient: false,
      maxHttpBufferSize: 64 * 1024,
      allowRequest: ({ headers }, decide) => decide(null, token !== undefined || isFromThisMachine(headers)),
    });
    this.#io.use((socket, next) => {
      const given: unknown = socket.handshake.auth["token"];
      const admitted = token === undefined || sameSecret(typeof given === "string" ? given : undefined, token);
      next(
        admitted ? undefined : Object.assign(new Error("a token is needed: auth: {token}"), { data: { status: 401 } }),
      );
    });
    this.#io.on("connection", (socket) => this.#serve(socket));
  }

  /** Lets its clients go. It closes the HTTP server as well, which whoever opened that waits for. */
  stop(): void {
    void this.#io.close();
  }

  #serve(socket: Socket): void {
    const subscriptions = new Map<string, AbortController>();
    const answer = (acknowledge: unknown, reply: { ok: true } | { ok: false; error: string }) => {
      if (typeof acknowledge === "function") acknowledge(reply);
    };
    socket.on("subscribe", (wanted: unknown, acknowledge: unknown) => {
      const topic = topicSchema.safeParse(wanted);
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
      this.#follow(socket, topic.data, ending.signal).catch((error: unknown) => {
        this.#log.error({ err: error }, "a subscription failed");
        socket.disconnect(true);
      });
      answer(acknowledge, { ok: true });
    });
    socket.on("unsubscribe", (wanted: unknown, acknowledge: unknown) => {
      const topic = topicSchema.safeParse(wanted);
      const key = topic.success ? keyOf(topic.data) : "";
      subscriptions.get(key)?.abort();
      answer(
        acknowledge,
        subscriptions.delete(key) ? { ok: true } : { ok: false, error: "there is no such subscription" },
      );
    });
    socket.on("disconnect", () => {
      for (const ending of subscriptions.values()) ending.abort();
    });
  }

  async #follow(socket: Socket, topic: Wanted, signal: AbortSignal): Promise<void> {
    if ("summaries" in topic) return followSummaries(this.#events, socket, signal);
    for await (const event of this.#events.follow(topic, signal)) {
      await drained(socket, signal);
      if (signal.aborted) return;
      emit(socket, topic, event);
    }
  }
}

const keyOf = (topic: Wanted): string =>
  "session_id" in topic
    ? `session:${topic.session_id}`
    : "conversation_id" in topic
      ? `conversation:${topic.conversation_id}`
      : "summaries" in topic
        ? "summaries"
        : "all";

function emit(socket: Socket, topic: Topic, event: RuntimeEvent): void {
  switch (event.kind) {
    case "session":
      socket.emit("agent_state_update", event.session);
      return;
    case "step":
      socket.emit("agent_step", event.step);
      return;
    case "action":
      socket.emit("action_update", event.action);
      return;
    case "message":
      socket.emit("conversation_message", event.message);
      return;
    case "delta":
      emitDelta(socket, topic, event.delta);
      return;
  }
  event satisfies never;
}

function emitDelta(
  socket: Socket,
  topic: Topic,
  { session_id, conversation_id, iteration, event_seq, text, tool }: Extract<RuntimeEvent, { kind: "delta" }>["delta"],
): void {
  const delta = { session_id, iteration, event_seq, text, ...(tool === undefined ? {} : { tool }) };
  if (!("conversation_id" in topic)) socket.emit("agent_step_delta", delta);
  if (!("session_id" in topic) && conversation_id !== null)
    socket.emit("conversation_message_delta", { conversation_id, ...delta });
}
