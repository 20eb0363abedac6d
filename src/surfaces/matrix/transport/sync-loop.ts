import type { Logger } from "pino";
import { z } from "zod";
import { Backoff, sleep } from "../../../concurrency/backoff.ts";
import type { RoomUpgrade } from "../state/room-upgrades.ts";
import { fillGap, sinceOwnJoin } from "./backfill.ts";
import { failureOf } from "./failure.ts";
import type { CryptoChanges, Homeserver, StrippedEvent, SyncResponse } from "./homeserver.ts";
import type { RoomEvent } from "./room-event.ts";

/** Short, so that an outage of seconds does not last much longer for the bot. */
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2000;
const MOST_REFUSALS = 5;
const LONGEST_FAILING_MS = 10 * 60_000;

export type Invite = { room_id: string; user_id: string; is_encrypted: boolean };

/** The result of one sync, completed with what it left out. */
export type SyncResult = {
  since: string;
  events: RoomEvent[];
  encrypted_room_ids: string[];
  /** Rooms whose missed events could not be fetched. */
  missed_room_ids: string[];
  invites: Invite[];
  upgrades: RoomUpgrade[];
  /** Rooms where somebody may have joined or left. */
  changed_member_room_ids: string[];
  crypto: CryptoChanges;
};

export type SyncListener = {
  since(): string | null;
  /** MATRIX-SYNC-1: stores the events together with the position in the stream, before anything is done about them. */
  synced(result: SyncResult): Promise<void>;
  invited(invites: Invite[]): void;
  unauthorized(): Promise<void>;
};

/**
 * Follows the homeserver's stream.
 *
 * MATRIX-SYNC-1  The position in the stream advances only together with the events before it.
 * MATRIX-SYNC-2  What a sync leaves out (`limited`) is fetched before the position advances.
 * MATRIX-SYNC-3  Events before the bot joined a room, or before its very first start, are ignored.
 * MATRIX-SYNC-4  A room whose missed events cannot be fetched does not block the others for good: it is told.
 */
export class SyncLoop {
  readonly #homeserver: Homeserver;
  readonly #user_id: string;
  readonly #listener: SyncListener;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  readonly #gapFailures = new Map<string, { times: number; since: number }>();

  constructor(homeserver: Homeserver, user_id: string, listener: SyncListener, log: Logger) {
    this.#homeserver = homeserver;
    this.#user_id = user_id;
    this.#listener = listener;
    this.#log = log;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const backoff = new Backoff(FIRST_WAIT_MS, LONGEST_WAIT_MS);
    let follows = false;
    while (!signal.aborted) {
      try {
        const since = this.#listener.since();
        if (since === null) {
          await this.#begin(signal);
          continue;
        }
        // The first sync does not wait for news, so that the bot knows at once that it follows the stream.
        const result = await this.#read(await this.#homeserver.sync(since, follows, signal), since, signal);
        await this.#listener.synced(result);
        this.#listener.invited(result.invites);
        backoff.reset();
        // Only a sync without a position lists invites that were left open.
        if (!follows) this.#listener.invited(this.#invitesOf(await this.#homeserver.sync(null, false, signal)));
        follows = true;
      } catch (error) {
        if (signal.aborted) return;
        const failure = failureOf(error);
        this.#log.warn({ failure }, "the homeserver could not be followed; trying again");
        if (failure.kind === "unauthorized") await this.#listener.unauthorized();
        if (failure.kind === "limited") await sleep(failure.retry_after_ms, signal);
        else await backoff.wait(signal);
      }
    }
  }

  /** MATRIX-SYNC-3: the very first start only records the position in the stream and which rooms are encrypted. */
  async #begin(signal: AbortSignal): Promise<void> {
    const response = await this.#homeserver.sync(null, false, signal);
    await this.#listener.synced({
      since: response.next_batch,
      events: [],
      encrypted_room_ids: encryptedRooms(response),
      missed_room_ids: [],
      invites: [],
      upgrades: [],
      changed_member_room_ids: [],
      crypto: response,
    });
  }

  async #read(response: SyncResponse, since: string, signal: AbortSignal): Promise<SyncResult> {
    const events: RoomEvent[] = [];
    const missed_room_ids: string[] = [];
    for (const [room_id, { timeline }] of Object.entries(response.rooms?.join ?? {})) {
      const recent = (timeline?.events ?? []).map((event) => ({ ...event, room_id }));
      const { after, hasJoin } = sinceOwnJoin(recent, this.#user_id);
      // MATRIX-SYNC-2
      const isGap = timeline?.limited === true && timeline.prev_batch !== undefined && !hasJoin;
      const missed = isGap ? await this.#missed(room_id, timeline.prev_batch as string, since, signal) : [];
      if (missed === null) missed_room_ids.push(room_id);
      events.push(...(missed ?? []), ...after);
    }
    return {
      since: response.next_batch,
      missed_room_ids,
      events: inOrderOfTime(events),
      encrypted_room_ids: encryptedRooms(response),
      invites: this.#invitesOf(response),
      upgrades: upgradesOf(response),
      changed_member_room_ids: roomsWithChangedMembers(response),
      crypto: response,
    };
  }

  /** The events that a sync left out of a room. Null if the homeserver refuses them or keeps failing. */
  async #missed(room_id: string, from: string, to: string, signal: AbortSignal): Promise<RoomEvent[] | null> {
    try {
      const missed = await fillGap(this.#homeserver, room_id, from, to, this.#user_id, signal);
      this.#gapFailures.delete(room_id);
      return missed;
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind !== "refused" && failure.kind !== "broken") throw error;
      const { times, since } = this.#gapFailures.get(room_id) ?? { times: 0, since: Date.now() };
      this.#gapFailures.set(room_id, { times: times + 1, since });
      // A failing homeserver may recover; a refusal will be repeated.
      const isTried = failure.kind === "refused" ? times + 1 >= MOST_REFUSALS : Date.now() - since > LONGEST_FAILING_MS;
      if (!isTried) throw error;
      this.#gapFailures.delete(room_id);
      this.#log.error({ room_id, failure }, "what was said in a room while the bot was away cannot be had");
      return null;
    }
  }

  #invitesOf(response: SyncResponse): Invite[] {
    const isInvite = ({ type, state_key, content }: StrippedEvent): boolean =>
      type === "m.room.member" && state_key === this.#user_id && content["membership"] === "invite";
    return Object.entries(response.rooms?.invite ?? {}).flatMap(([room_id, { invite_state }]) => {
      const invite = invite_state?.events?.find(isInvite);
      const is_encrypted = invite_state?.events?.some(({ type }) => type === "m.room.encryption") ?? false;
      return invite ? [{ room_id, user_id: invite.sender, is_encrypted }] : [];
    });
  }
}

/** A sync lists rooms in no order. Merges their events by time; each room's events keep their order. */
function inOrderOfTime(events: RoomEvent[]): RoomEvent[] {
  const latest = new Map<string, number>();
  const timed = events.map((event) => {
    const time = Math.max(latest.get(event.room_id) ?? 0, event.origin_server_ts);
    latest.set(event.room_id, time);
    return { event, time };
  });
  return timed.sort((a, b) => a.time - b.time).map(({ event }) => event);
}

function encryptedRooms(response: SyncResponse): string[] {
  return Object.entries(response.rooms?.join ?? {})
    .filter(([, { state, timeline }]) =>
      [...(state?.events ?? []), ...(timeline?.events ?? [])].some(({ type }) => type === "m.room.encryption"),
    )
    .map(([room_id]) => room_id);
}

const tombstoneSchema = z.object({ replacement_room: z.string().min(1) });

function upgradesOf(response: SyncResponse): RoomUpgrade[] {
  return Object.entries(response.rooms?.join ?? {}).flatMap(([room_id, { state, timeline }]) =>
    [...(state?.events ?? []), ...(timeline?.events ?? [])].flatMap(({ type, state_key, sender, content }) => {
      if (type !== "m.room.tombstone" || state_key !== "") return [];
      const tombstone = tombstoneSchema.safeParse(content);
      return tombstone.success ? [{ room_id, replacement: tombstone.data.replacement_room, user_id: sender }] : [];
    }),
  );
}

function roomsWithChangedMembers(response: SyncResponse): string[] {
  return Object.entries(response.rooms?.join ?? {})
    .filter(
      ([, { timeline }]) =>
        timeline?.limited === true || timeline?.events?.some(({ type }) => type === "m.room.member") === true,
    )
    .map(([room_id]) => room_id);
}
