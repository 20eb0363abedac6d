import { randomInt } from "node:crypto";
import {
  type HttpApiEvent,
  type HttpApiEventHandlerMap,
  MatrixError,
  MatrixHttpApi,
  Method,
} from "matrix-js-sdk/lib/http-api/index.js";
import { TypedEventEmitter } from "matrix-js-sdk/lib/models/typed-event-emitter.js";
import type { MessageContent } from "../outgoing/content.ts";
import type { RoomEvent } from "./room-event.ts";

export type SyncResponse = {
  next_batch: string;
  rooms?: {
    join?: Record<string, JoinedRoom>;
    invite?: Record<string, { invite_state?: { events?: StrippedEvent[] } }>;
  };
};
type JoinedRoom = {
  state?: { events?: RoomEvent[] };
  timeline?: { events?: RoomEvent[]; limited?: boolean; prev_batch?: string };
};
export type StrippedEvent = { type: string; state_key?: string; sender: string; content: Record<string, unknown> };
export type MessagesPage = { chunk: RoomEvent[]; end?: string };

const REQUEST_LIMIT_MS = 30_000;
const SYNC_WAIT_MS = 30_000;
/** The homeserver answers a sync by then, or the connection is dead. */
const SYNC_LIMIT_MS = SYNC_WAIT_MS + 15_000;

/** What a sync and a look into the past are to tell, and nothing else. */
const EVENT_TYPES = ["m.room.message", "m.reaction", "m.room.member", "m.room.encryption"];
const NOTHING = { types: [] };
const filterOf = (limit: number) => ({
  presence: NOTHING,
  account_data: NOTHING,
  room: {
    account_data: NOTHING,
    ephemeral: NOTHING,
    state: { types: ["m.room.encryption"] },
    timeline: { types: EVENT_TYPES, limit, lazy_load_members: true },
  },
});

const room = (room_id: string): string => `/rooms/${encodeURIComponent(room_id)}`;

/** The calls of the client-server API that the bot makes, through the SDK's transport: its addresses, errors and time limits. */
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

  login(
    user_id: string,
    password: string,
    device_id: string | null,
  ): Promise<{ access_token: string; device_id: string }> {
    return this.#http.request(
      Method.Post,
      "/login",
      undefined,
      {
        type: "m.login.password",
        identifier: { type: "m.id.user", user: user_id },
        password,
        initial_device_display_name: "Everstep",
        ...(device_id === null ? {} : { device_id }),
      },
      within(),
    );
  }

  whoami(signal?: AbortSignal): Promise<{ user_id: string; device_id?: string }> {
    const limits = within(REQUEST_LIMIT_MS, signal);
    return this.#http.authedRequest(Method.Get, "/account/whoami", undefined, undefined, limits);
  }

  async displayName(user_id: string): Promise<string | null> {
    const path = `/profile/${encodeURIComponent(user_id)}/displayname`;
    return (
      (await this.#http.authedRequest<{ displayname?: string }>(Method.Get, path, undefined, undefined, within()))
        .displayname ?? null
    );
  }

  /** What is new since then, at once or as soon as there is something. Without a `since` all rooms are told, and their past is not. */
  sync(since: string | null, waits: boolean, signal: AbortSignal): Promise<SyncResponse> {
    const filter = JSON.stringify(filterOf(since === null ? 1 : 50));
    // Synapse answers the same question from a cache for two minutes. Without a `since` it never waits, whatever the number.
    const timeout = since === null ? randomInt(1, 100_000) : waits ? SYNC_WAIT_MS : 0;
    const query = { filter, timeout, ...(since === null ? {} : { since }) };
    return this.#http.authedRequest(Method.Get, "/sync", query, undefined, within(SYNC_LIMIT_MS, signal));
  }

  /** A page of a room's past, newest first. */
  messages(room_id: string, from: string, to: string, signal: AbortSignal): Promise<MessagesPage> {
    const filter = JSON.stringify({ types: EVENT_TYPES });
    const query = { dir: "b", from, to, limit: 100, filter };
    return this.#http.authedRequest(
      Method.Get,
      `${room(room_id)}/messages`,
      query,
      undefined,
      within(REQUEST_LIMIT_MS, signal),
    );
  }

  /** Cut short it may have been sent or not; sent again under the same id it is sent once. */
  async send(room_id: string, transaction_id: string, content: MessageContent, signal: AbortSignal): Promise<string> {
    const path = `${room(room_id)}/send/m.room.message/${encodeURIComponent(transaction_id)}`;
    const limits = within(REQUEST_LIMIT_MS, signal);
    return (await this.#http.authedRequest<{ event_id: string }>(Method.Put, path, undefined, content, limits))
      .event_id;
  }

  async typing(room_id: string, user_id: string, timeout_ms: number): Promise<void> {
    const path = `${room(room_id)}/typing/${encodeURIComponent(user_id)}`;
    const body = timeout_ms > 0 ? { typing: true, timeout: timeout_ms } : { typing: false };
    await this.#http.authedRequest(Method.Put, path, undefined, body, within());
  }

  async join(room_id: string): Promise<void> {
    await this.#http.authedRequest(Method.Post, `/join/${encodeURIComponent(room_id)}`, undefined, {}, within());
  }

  /** The alias makes it one room, however often it is asked for. */
  async createRoom(name: string, topic: string, invite: string, alias: string): Promise<string> {
    try {
      const body = { preset: "trusted_private_chat", name, topic, invite: [invite], room_alias_name: alias };
      return (
        await this.#http.authedRequest<{ room_id: string }>(Method.Post, "/createRoom", undefined, body, within())
      ).room_id;
    } catch (error) {
      if (!(error instanceof MatrixError) || error.errcode !== "M_ROOM_IN_USE") throw error;
      const server = (await this.whoami()).user_id.split(":").slice(1).join(":");
      const path = `/directory/room/${encodeURIComponent(`#${alias}:${server}`)}`;
      return (await this.#http.authedRequest<{ room_id: string }>(Method.Get, path, undefined, undefined, within()))
        .room_id;
    }
  }
}

/** The SDK's own limit leaves a timer behind that keeps the process alive; this one does not. */
function within(ms = REQUEST_LIMIT_MS, signal?: AbortSignal): { abortSignal: AbortSignal; priority: "auto" } {
  const limit = AbortSignal.timeout(ms);
  return { abortSignal: signal ? AbortSignal.any([limit, signal]) : limit, priority: "auto" };
}

/** Requests would be logged with what is in them. */
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
