import { randomInt } from "node:crypto";
import {
  type HttpApiEvent,
  type HttpApiEventHandlerMap,
  MatrixError,
  MatrixHttpApi,
  Method,
} from "matrix-js-sdk/lib/http-api/index.js";
import { TypedEventEmitter } from "matrix-js-sdk/lib/models/typed-event-emitter.js";
import { z } from "zod";
import type { MessageContent } from "../outgoing/content.ts";
import { listOf, roomEventSchema, strippedEventSchema } from "./room-event.ts";

const roomEvents = listOf(roomEventSchema).exactOptional();
const joinedRoomSchema = z.object({
  state: z.object({ events: roomEvents }).exactOptional(),
  timeline: z
    .object({ events: roomEvents, limited: z.boolean().exactOptional(), prev_batch: z.string().exactOptional() })
    .exactOptional(),
});
const invitedRoomSchema = z.object({
  invite_state: z.object({ events: listOf(strippedEventSchema).exactOptional() }).exactOptional(),
});
const cryptoSyncSchema = z.object({
  to_device: z.object({ events: z.array(z.unknown()).default([]) }).default({ events: [] }),
  device_lists: z
    .object({ changed: z.array(z.string()).default([]), left: z.array(z.string()).default([]) })
    .default({ changed: [], left: [] }),
  device_one_time_keys_count: z.record(z.string(), z.number()).default({}),
  device_unused_fallback_key_types: z.array(z.string()).exactOptional(),
});
/** What a sync says about keys and devices. */
export type CryptoChanges = z.infer<typeof cryptoSyncSchema>;
const syncSchema = cryptoSyncSchema.extend({
  next_batch: z.string(),
  rooms: z
    .object({
      join: z.record(z.string(), joinedRoomSchema).exactOptional(),
      invite: z.record(z.string(), invitedRoomSchema).exactOptional(),
    })
    .exactOptional(),
});
export type SyncResponse = z.infer<typeof syncSchema>;
export type StrippedEvent = z.infer<typeof strippedEventSchema>;
const messagesSchema = z.object({ chunk: listOf(roomEventSchema), end: z.string().exactOptional() });
export type MessagesPage = z.infer<typeof messagesSchema>;

const loginSchema = z.object({ access_token: z.string(), device_id: z.string() });
const whoamiSchema = z.object({ user_id: z.string(), device_id: z.string().exactOptional() });
const displayNameSchema = z.object({ displayname: z.string().nullish() });
const sentSchema = z.object({ event_id: z.string() });
const membersSchema = z.object({
  chunk: z.array(z.object({ state_key: z.string(), content: z.object({ membership: z.string() }) })),
});
const READERS = new Set(["join", "invite"]);
const roomSchema = z.object({ room_id: z.string() });

/** A message as sent over the wire. */
export type WireMessage =
  | { type: "m.room.message"; content: MessageContent }
  | { type: "m.room.encrypted" | "m.reaction"; content: Record<string, unknown> };

const REQUEST_LIMIT_MS = 30_000;
const SYNC_WAIT_MS = 30_000;
/** If a sync takes longer, the connection is dead. */
const SYNC_LIMIT_MS = SYNC_WAIT_MS + 15_000;

/** The event types that a sync and the history of a room return. */
const EVENT_TYPES = [
  "m.room.message",
  "m.reaction",
  "m.room.member",
  "m.room.encryption",
  "m.room.encrypted",
  "m.room.tombstone",
  "m.key.verification.*",
];
const NOTHING = { types: [] };
const filterOf = (limit: number) => ({
  presence: NOTHING,
  account_data: NOTHING,
  room: {
    account_data: NOTHING,
    ephemeral: NOTHING,
    state: { types: ["m.room.encryption", "m.room.tombstone"] },
    timeline: { types: EVENT_TYPES, limit, lazy_load_members: true },
  },
});

const room = (room_id: string): string => `/rooms/${encodeURIComponent(room_id)}`;

/** The calls of the client-server API that the bot makes, through the SDK's transport. */
export class Homeserver {
  readonly #http: MatrixHttpApi<{ baseUrl: string; prefix: string; onlyData: true; accessToken?: string }>;

  constructor(baseUrl: string) {
    const emitter = new TypedEventEmitter<HttpApiEvent, HttpApiEventHandlerMap>();
    const logger = silent();
    this.#http = new MatrixHttpApi(emitter, {
      baseUrl: baseUrl.replace(/\/$/, ""),
      prefix: "/_matrix/client/v3",
      onlyData: true,
      logger,
    });
  }

  authorize(access_token: string): void {
    this.#http.opts.accessToken = access_token;
  }

  async login(
    user_id: string,
    password: string,
    device_id: string | null,
  ): Promise<{ access_token: string; device_id: string }> {
    const body = {
      type: "m.login.password",
      identifier: { type: "m.id.user", user: user_id },
      password,
      initial_device_display_name: "Everstep",
      ...(device_id === null ? {} : { device_id }),
    };
    return loginSchema.parse(await this.#http.request(Method.Post, "/login", undefined, body, within()));
  }

  async whoami(signal?: AbortSignal): Promise<{ user_id: string; device_id?: string }> {
    const limits = within(REQUEST_LIMIT_MS, signal);
    return whoamiSchema.parse(
      await this.#http.authedRequest(Method.Get, "/account/whoami", undefined, undefined, limits),
    );
  }

  async displayName(user_id: string): Promise<string | null> {
    const path = `/profile/${encodeURIComponent(user_id)}/displayname`;
    const answer = await this.#http.authedRequest(Method.Get, path, undefined, undefined, within());
    return displayNameSchema.parse(answer).displayname ?? null;
  }

  /** What is new since a position, at once or as soon as there is something. Without a `since` it lists all rooms without their past. */
  async sync(since: string | null, waits: boolean, signal: AbortSignal): Promise<SyncResponse> {
    const filter = JSON.stringify(filterOf(since === null ? 1 : 50));
    // Synapse caches the response to an identical request for two minutes. Without a `since` it never waits, whatever the number.
    const timeout = since === null ? randomInt(1, 100_000) : waits ? SYNC_WAIT_MS : 0;
    const query = { filter, timeout, ...(since === null ? {} : { since }) };
    const limits = within(SYNC_LIMIT_MS, signal);
    return syncSchema.parse(await this.#http.authedRequest(Method.Get, "/sync", query, undefined, limits));
  }

  /** A page of a room's history, newest first. */
  async messages(room_id: string, from: string, to: string, signal: AbortSignal): Promise<MessagesPage> {
    const filter = JSON.stringify({ types: EVENT_TYPES });
    const query = { dir: "b", from, to, limit: 100, filter };
    const path = `${room(room_id)}/messages`;
    const limits = within(REQUEST_LIMIT_MS, signal);
    return messagesSchema.parse(await this.#http.authedRequest(Method.Get, path, query, undefined, limits));
  }

  /** An aborted call may have sent it or not; repeated under the same id it is sent once. */
  async send(room_id: string, transaction_id: string, message: WireMessage, signal: AbortSignal): Promise<string> {
    const { type, content } = message;
    const path = `${room(room_id)}/send/${type}/${encodeURIComponent(transaction_id)}`;
    const limits = within(REQUEST_LIMIT_MS, signal);
    return sentSchema.parse(await this.#http.authedRequest(Method.Put, path, undefined, content, limits)).event_id;
  }

  /** Redacts an event; safe to repeat, like `send`. */
  async redact(room_id: string, transaction_id: string, event_id: string, signal: AbortSignal): Promise<string> {
    const path = `${room(room_id)}/redact/${encodeURIComponent(event_id)}/${encodeURIComponent(transaction_id)}`;
    const limits = within(REQUEST_LIMIT_MS, signal);
    return sentSchema.parse(await this.#http.authedRequest(Method.Put, path, undefined, {}, limits)).event_id;
  }

  /** Sends a request of the crypto library; request and response are JSON. */
  async cryptoRequest(method: "POST" | "PUT", path: string, body: string, signal: AbortSignal): Promise<string> {
    const verb = method === "PUT" ? Method.Put : Method.Post;
    const limits = within(REQUEST_LIMIT_MS, signal);
    return JSON.stringify(await this.#http.authedRequest(verb, path, undefined, JSON.parse(body), limits));
  }

  /** Any other request with a JSON response; null for M_NOT_FOUND. */
  async requestOrNull(
    method: "GET" | "POST" | "PUT",
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<unknown> {
    try {
      const verb = { GET: Method.Get, POST: Method.Post, PUT: Method.Put }[method] as Method.Put;
      const limits = within(REQUEST_LIMIT_MS, signal);
      return await this.#http.authedRequest(verb, path, undefined, body, limits);
    } catch (error) {
      if (error instanceof MatrixError && error.errcode === "M_NOT_FOUND") return null;
      throw error;
    }
  }

  /** Publishes the keys of a cross-signing identity. A homeserver may require the password. */
  async uploadIdentity(
    body: string,
    { user_id, password }: { user_id: string; password: string | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const path = "/keys/device_signing/upload";
    try {
      await this.cryptoRequest("POST", path, body, signal);
    } catch (error) {
      const session = error instanceof MatrixError && error.httpStatus === 401 ? error.data["session"] : undefined;
      if (session === undefined || password === undefined) throw error;
      const auth = { type: "m.login.password", identifier: { type: "m.id.user", user: user_id }, password, session };
      await this.cryptoRequest("POST", path, JSON.stringify({ ...JSON.parse(body), auth }), signal);
    }
  }

  /** Who reads what is said in a room: its members and those invited. */
  async members(room_id: string, signal: AbortSignal): Promise<string[]> {
    const limits = within(REQUEST_LIMIT_MS, signal);
    const path = `${room(room_id)}/members`;
    const query = { not_membership: "leave" };
    const { chunk } = membersSchema.parse(await this.#http.authedRequest(Method.Get, path, query, undefined, limits));
    return chunk.filter(({ content }) => READERS.has(content.membership)).map(({ state_key }) => state_key);
  }

  async isEncrypted(room_id: string): Promise<boolean> {
    try {
      const path = `${room(room_id)}/state/m.room.encryption/`;
      await this.#http.authedRequest(Method.Get, path, undefined, undefined, within());
      return true;
    } catch (error) {
      if (error instanceof MatrixError && error.errcode === "M_NOT_FOUND") return false;
      throw error;
    }
  }

  async typing(room_id: string, user_id: string, timeout_ms: number): Promise<void> {
    const path = `${room(room_id)}/typing/${encodeURIComponent(user_id)}`;
    const body = timeout_ms > 0 ? { typing: true, timeout: timeout_ms } : { typing: false };
    await this.#http.authedRequest(Method.Put, path, undefined, body, within());
  }

  /** `via`: homeservers through which to join. */
  async join(room_id: string, via: string[] = []): Promise<void> {
    const query = via.length === 0 ? undefined : { via, server_name: via };
    await this.#http.authedRequest(Method.Post, `/join/${encodeURIComponent(room_id)}`, query, {}, within());
  }

  /** The alias makes it one room, however often this is called. */
  async createRoom(name: string, topic: string, invite: string, alias: string): Promise<string> {
    try {
      const body = { preset: "trusted_private_chat", name, topic, invite: [invite], room_alias_name: alias };
      const made = await this.#http.authedRequest(Method.Post, "/createRoom", undefined, body, within());
      return roomSchema.parse(made).room_id;
    } catch (error) {
      if (!(error instanceof MatrixError) || error.errcode !== "M_ROOM_IN_USE") throw error;
      const server = (await this.whoami()).user_id.split(":").slice(1).join(":");
      const path = `/directory/room/${encodeURIComponent(`#${alias}:${server}`)}`;
      const response = await this.#http.authedRequest(Method.Get, path, undefined, undefined, within());
      return roomSchema.parse(response).room_id;
    }
  }
}

/** The SDK's own timeout leaves a timer that keeps the process alive; this one does not. */
function within(ms = REQUEST_LIMIT_MS, signal?: AbortSignal): { abortSignal: AbortSignal; priority: "auto" } {
  const limit = AbortSignal.timeout(ms);
  return { abortSignal: signal ? AbortSignal.any([limit, signal]) : limit, priority: "auto" };
}

/** Otherwise requests would be logged with their content. */
function silent() {
  const logger = {
    trace() {},
    debug() {},
    info() {},
    warn() {},
    error() {},
    getChild: () => logger,
  };
  return logger;
}
