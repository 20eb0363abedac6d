import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  ClientEvent,
  createClient,
  type ICreateRoomOpts,
  type MatrixClient,
  type MatrixEvent,
  MatrixEventEvent,
  RoomEvent,
  SyncState,
} from "matrix-js-sdk";
import { logger } from "matrix-js-sdk/lib/logger.js";
import { within } from "../within.ts";

const WAIT_MS = 90_000;

/** A message as a person sees it: with its latest edit, in its original place. */
export type Seen = {
  event_id: string;
  sender: string;
  text: string;
  html: string | null;
  is_notice: boolean;
  reply_to: string | null;
  /** The first event of its thread. */
  thread: string | null;
  /** Every text it had, oldest first. */
  versions: string[];
};

// The SDK's request timeout outlives the request by minutes, and would keep the tests' process alive.
const { setTimeout: plainSetTimeout } = globalThis;
const unreferenced = (work: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
  const timer = plainSetTimeout(work, ms, ...args);
  return (ms ?? 0) >= 60_000 ? timer.unref() : timer;
};
globalThis.setTimeout = Object.assign(unreferenced, plainSetTimeout);

// Parts of the SDK log on their own, whatever logger the client was given.
console.debug = () => {};
logger.info = () => {};
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, getChild: () => silent };

/** A user of a homeserver, through matrix-js-sdk's own client, without any of the bot's code. */
export class Person implements Disposable {
  readonly client: MatrixClient;
  readonly password: string;
  readonly #seen = new Map<string, Seen[]>();
  readonly #edits: { target: string; sender: string; text: string; html: string | null }[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #messageIds = new Set<string>();

  private constructor(client: MatrixClient, password: string) {
    this.client = client;
    this.password = password;
    client.on(RoomEvent.Timeline, (event) => this.#take(event));
    client.on(RoomEvent.Redaction, () => this.#news());
    client.on(MatrixEventEvent.Decrypted, (event) => this.#take(event));
  }

  /** A new user, who follows the homeserver. */
  static async register(url: string, name: string, { follows = true, encrypts = false } = {}): Promise<Person> {
    const username = `${name}-${randomBytes(4).toString("hex")}`;
    const password = randomBytes(12).toString("hex");
    const registering = createClient({ baseUrl: url, logger: silent });
    const { user_id, access_token, device_id } = await registering.registerRequest({
      username,
      password,
      auth: { type: "m.login.dummy" },
    });
    const client = createClient({
      baseUrl: url,
      userId: user_id,
      accessToken: access_token ?? assert.fail(),
      deviceId: device_id ?? assert.fail(),
      logger: silent,
    });
    const person = new Person(client, password);
    if (encrypts) await client.initRustCrypto({ useIndexedDB: false });
    if (follows) await person.#follow();
    return person;
  }

  get user_id(): string {
    return this.client.getUserId() ?? assert.fail();
  }

  get access_token(): string {
    return this.client.getAccessToken() ?? assert.fail();
  }

  /** Creates a room and invites others; resolves when those who join by themselves have joined. */
  async openRoom(invite: string[], joining: string[] = invite, options: ICreateRoomOpts = {}): Promise<string> {
    const { room_id } = await this.client.createRoom({ invite, ...options });
    await this.untilSo("they joined", () =>
      joining.every((id) => this.client.getRoom(room_id)?.getMember(id)?.membership === "join"),
    );
    return room_id;
  }

  /** Resolves with the event's id. */
  async say(room_id: string, text: string): Promise<string> {
    return (await this.client.sendTextMessage(room_id, text)).event_id;
  }

  /** Events in a room that this client could not decrypt. */
  unreadable(room_id: string): MatrixEvent[] {
    const events = this.client.getRoom(room_id)?.getLiveTimeline().getEvents() ?? [];
    return events.filter((event) => event.isDecryptionFailure());
  }

  /** What others wrote in a room, oldest first. */
  heard(room_id: string): Seen[] {
    return (this.#seen.get(room_id) ?? []).filter(({ sender }) => sender !== this.user_id);
  }

  /** Sends a message and waits for a later one that matches. */
  async ask(room_id: string, text: string, answer: RegExp): Promise<Seen> {
    const before = this.heard(room_id).length;
    await this.say(room_id, text);
    return this.hears(room_id, answer, before);
  }

  async react(room_id: string, event_id: string, key: string): Promise<void> {
    const content = { "m.relates_to": { rel_type: "m.annotation", event_id, key } };
    await this.client.sendEvent(room_id, "m.reaction" as never, content as never);
  }

  async reply(room_id: string, event_id: string, body: string): Promise<string> {
    const content = { msgtype: "m.text", body, "m.relates_to": { "m.in_reply_to": { event_id } } };
    return (await this.client.sendMessage(room_id, content as never)).event_id;
  }

  /** Sends a message in a thread, as clients do: with a reply fallback, for clients that do not support threads. */
  async sayInThread(room_id: string, thread: string, body: string): Promise<string> {
    const relation = {
      rel_type: "m.thread",
      event_id: thread,
      is_falling_back: true,
      "m.in_reply_to": { event_id: thread },
    };
    const content = { msgtype: "m.text", body, "m.relates_to": relation };
    return (await this.client.sendMessage(room_id, content as never)).event_id;
  }

  /** Sends a message in a thread and waits for one in that thread that matches. */
  async askInThread(room_id: string, thread: string, text: string, answer: RegExp): Promise<Seen> {
    const before = this.heard(room_id).length;
    await this.sayInThread(room_id, thread, text);
    const find = () =>
      this.heard(room_id)
        .slice(before)
        .find((seen) => seen.thread === thread && answer.test(seen.text));
    await this.untilSo(`${answer} in the thread`, () => find() !== undefined, room_id);
    return find() ?? assert.fail();
  }

  /** Other users' reactions to a message, without removed ones. */
  signs(room_id: string, event_id: string): string[] {
    const events = this.client.getRoom(room_id)?.getLiveTimeline().getEvents() ?? [];
    return events
      .filter((event) => event.getType() === "m.reaction" && !event.isRedacted() && event.getSender() !== this.user_id)
      .map((event) => event.getRelation())
      .flatMap((relation) => (relation?.event_id === event_id ? [relation.key ?? ""] : []));
  }

  async seesSigns(room_id: string, event_id: string, expected: string[]): Promise<void> {
    const isSo = () => JSON.stringify(this.signs(room_id, event_id)) === JSON.stringify(expected);
    await this.untilSo(`the signs ${expected.join(" ")}`, isSo, room_id);
  }

  /** The first matching message among those not returned before. */
  async hears(room_id: string, answer: RegExp, before = 0): Promise<Seen> {
    const find = () =>
      this.heard(room_id)
        .slice(before)
        .find(({ text }) => answer.test(text));
    await this.untilSo(`${answer}`, () => find() !== undefined, room_id);
    return find() ?? assert.fail();
  }

  async untilSo(what: string, isSo: () => boolean, room_id?: string): Promise<void> {
    const happened = async (): Promise<void> => {
      while (!isSo()) {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#waiting.add(resolve);
        await promise;
        this.#waiting.delete(resolve);
      }
    };
    await within(WAIT_MS, happened(), () => {
      const heard = room_id === undefined ? [] : this.heard(room_id).map(({ text }) => text);
      return `did not happen: ${what}; heard: ${JSON.stringify(heard.slice(-12))}`;
    });
  }

  [Symbol.dispose](): void {
    this.client.stopClient();
  }

  async #follow(): Promise<void> {
    const following = new Promise<void>((resolve) => {
      this.client.on(ClientEvent.Sync, (state) => {
        if (state === SyncState.Prepared) resolve();
        this.#news();
      });
    });
    await this.client.startClient({ initialSyncLimit: 100, lazyLoadMembers: false });
    await following;
  }

  #news(): void {
    for (const wake of this.#waiting) wake();
  }

  #take(event: MatrixEvent): void {
    const room_id = event.getRoomId() ?? "";
    const event_id = event.getId() ?? "";
    // A sent message arrives twice: as the local echo, and from the homeserver.
    if (event.getType() === "m.room.message" && !event_id.startsWith("~") && !this.#messageIds.has(event_id)) {
      this.#messageIds.add(event_id);
      this.#message(room_id, event_id, event.getSender() ?? "", event.getOriginalContent());
    }
    this.#news();
  }

  #message(room_id: string, event_id: string, sender: string, content: Record<string, unknown>): void {
    const relation = (content["m.relates_to"] ?? {}) as Record<string, unknown>;
    if (relation["rel_type"] === "m.replace") {
      const renewed = content["m.new_content"] as Record<string, unknown>;
      this.#edits.push({
        target: String(relation["event_id"]),
        sender,
        text: String(renewed["body"]),
        html: htmlOf(renewed),
      });
    } else {
      const reply = relation["m.in_reply_to"] as { event_id?: string } | undefined;
      const text = String(content["body"]);
      const seen: Seen = {
        event_id,
        sender,
        text,
        html: htmlOf(content),
        is_notice: content["msgtype"] === "m.notice",
        reply_to: reply?.event_id ?? null,
        thread: relation["rel_type"] === "m.thread" ? String(relation["event_id"]) : null,
        versions: [text],
      };
      this.#seen.set(room_id, [...(this.#seen.get(room_id) ?? []), seen]);
    }
    this.#applyEdits(room_id);
  }

  #applyEdits(room_id: string): void {
    for (const seen of this.#seen.get(room_id) ?? [])
      for (const edit of this.#edits.filter(
        ({ target, sender }) => target === seen.event_id && sender === seen.sender,
      )) {
        seen.text = edit.text;
        seen.html = edit.html;
        seen.versions.push(edit.text);
        this.#edits.splice(this.#edits.indexOf(edit), 1);
      }
  }
}

const htmlOf = (content: Record<string, unknown>): string | null =>
  typeof content["formatted_body"] === "string" ? content["formatted_body"] : null;
