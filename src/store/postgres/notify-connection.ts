import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type postgres from "postgres";
import { Emitter } from "../../concurrency/emitter.ts";
import { KeyedMutex } from "../../concurrency/mutex.ts";
import type { StepDelta } from "../../domain/event.ts";
import type { SessionRelease } from "../store.ts";
import { closed } from "../store-errors.ts";
import {
  Collisions,
  LOCK_TIMEOUT,
  onSilence,
  openClient,
  type Parameter,
  type Row,
  run,
  toStoreError,
  wasRefused,
} from "./connections.ts";

/** PostgreSQL accepts payloads of less than 8,000 bytes. */
const LARGEST_PAYLOAD = 7_500;
/** Milliseconds that a notification may wait so that one message carries many. Those about work are sent at once. */
const DEBOUNCE_MS = 8;
const RECONNECT_MS = 50;
/** Milliseconds of silence after which the connection is given up and another is made. */
const SILENCE_MS = 4000;

type ConnectionListener = { received: (notifications: Notification[]) => void; up: () => void; down: () => void };

/**
 * The one connection over which this process receives and sends notifications. It reconnects by itself.
 *
 * NOTIFY-1  A notification is sent after the commit it is about, never in its transaction, and many in one message.
 * NOTIFY-2  Notifications are lost while the connection is down; whoever depends on them reads the rows again once it is up.
 */
export class NotifyConnection {
  readonly #url: string;
  readonly #channel: string;
  readonly #node_no: number;
  readonly #listener: ConnectionListener;
  /** By process: the message that is coming in from it, in parts. */
  readonly #parts = new Map<string, { message: string; texts: string[] }>();
  readonly #outbox = new Outbox();
  #client: postgres.Sql | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #lastMessage = 0;
  #closed = false;
  #isUp = false;
  /** Nothing is sent if nobody listens. */
  hasPeers = true;
  hasFollowers = true;

  constructor(url: string, { channel, node_no }: { channel: string; node_no: number }, listener: ConnectionListener) {
    this.#url = url;
    this.#channel = channel;
    this.#node_no = node_no;
    this.#listener = listener;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Throws if the first connection fails; later it reconnects by itself. */
  async start(): Promise<void> {
    await this.#connect();
  }

  /** Repeats what collided with another transaction or was cancelled: a lost notification delays others by seconds. */
  readonly query = async (text: string, ...parameters: Parameter[]): Promise<Row[]> => {
    const collisions = new Collisions();
    for (;;) {
      try {
        return await this.#queryOnce(text, parameters);
      } catch (error) {
        if (!(await collisions.mayRepeat(error))) throw error;
      }
    }
  };

  async #queryOnce(text: string, parameters: readonly Parameter[]): Promise<Row[]> {
    const client = this.#client;
    if (!client) throw Object.assign(new Error("not connected"), { code: "08003" });
    const silence = Promise.withResolvers<never>();
    const stop = onSilence(SILENCE_MS, () => {
      this.#lost(client);
      silence.reject(Object.assign(new Error("the server is silent"), { code: "ETIMEDOUT" }));
    });
    try {
      return await Promise.race([run(client, text, parameters), silence.promise]);
    } finally {
      stop();
    }
  }

  /** Whether somebody in another process follows what is committed here. */
  get isHeard(): boolean {
    return this.hasPeers && this.hasFollowers;
  }

  /** NOTIFY-1. */
  notify(notification: Exclude<Notification, DeltaNotification>): void {
    if (this.#closed || !this.#isUp || !this.hasPeers) return; // NOTIFY-2
    const { kind } = notification;
    if (!this.isHeard && (kind === "session" || kind === "actions" || kind === "messages")) return;
    this.#outbox.add(notification);
    if (kind === "work" || kind === "free" || kind === "unlocked") this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), DEBOUNCE_MS);
  }

  notifyDelta(delta: StepDelta): void {
    if (this.#closed || !this.#isUp || !this.isHeard) return; // NOTIFY-2
    this.#outbox.addDelta(delta);
    this.#timer ??= setTimeout(() => this.#send(), DEBOUNCE_MS);
  }

  /** Sends what is still queued. */
  async close(): Promise<void> {
    this.#send();
    await this.#sending;
    this.#closed = true;
    await this.#client?.end({ timeout: 1 }).catch(() => {});
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    // Notifications of the same turn of the event loop are sent together.
    await new Promise(setImmediate);
    while (!this.#outbox.isEmpty && this.#client) {
      for (const payload of toPayloads(this.#node_no, ++this.#lastMessage, this.#outbox.take()))
        if (!(await this.#sendPayload(payload))) return;
    }
  }

  /** NOTIFY-2. Returns whether it was sent. */
  async #sendPayload(payload: string): Promise<boolean> {
    const client = this.#client;
    try {
      await this.query("select pg_notify($1, $2)", this.#channel, payload);
      return true;
    } catch (error) {
      if (wasRefused(error)) process.emitWarning(error as Error);
      else if (client) this.#lost(client);
      return false;
    }
  }

  async #connect(): Promise<void> {
    const client: postgres.Sql = openClient(this.#url, {
      max: 1,
      // What is written here (leases, freed claims) may be lost in a crash of the server: it is written again.
      settings: { synchronous_commit: "off", ...LOCK_TIMEOUT },
      onNotify: (_, payload) => this.#receive(payload),
      onClose: () => this.#lost(client),
    });
    this.#client = client;
    try {
      await this.query(`listen "${this.#channel}"`);
    } catch (error) {
      if (this.#client === client) this.#client = undefined;
      void client.end({ timeout: 0 }).catch(() => {});
      throw error;
    }
    this.#isUp = true;
    this.hasPeers = true;
    this.hasFollowers = true;
    this.#listener.up();
  }

  #lost(client: postgres.Sql): void {
    if (this.#closed || this.#client !== client) return;
    void client.end({ timeout: 0 }).catch(() => {});
    this.#client = undefined;
    const wasUp = this.#isUp;
    this.#isUp = false;
    this.#outbox.clear();
    this.#parts.clear();
    if (!wasUp) return;
    this.#listener.down();
    void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    while (!this.#closed) {
      try {
        return await this.#connect();
      } catch {
        await wait(RECONNECT_MS);
      }
    }
  }

  #receive(payload: string): void {
    const [, node, message, index, total, text] = /^(\d+) (\d+) (\d+)\/(\d+) (.*)$/s.exec(payload) ?? [];
    if (text === undefined || Number(node) === this.#node_no) return;
    this.hasPeers = true;
    const whole =
      total === "1" ? text : this.#join(node as string, message as string, Number(index), Number(total), text);
    if (whole === null) return;
    try {
      this.#listener.received(JSON.parse(whole) as Notification[]);
    } catch (error) {
      // Anybody with access to the database can send on the channel.
      process.emitWarning(error as Error);
    }
  }

  /** A process sends its messages one by one, so only the last can be incomplete. Null until all its parts have arrived. */
  #join(node: string, message: string, index: number, total: number, text: string): string | null {
    const incomplete = this.#parts.get(node);
    const parts = incomplete?.message === message ? incomplete : { message, texts: [] };
    if (parts.texts.length !== index) return null;
    parts.texts.push(text);
    this.#parts.set(node, parts);
    if (parts.texts.length < total) return null;
    this.#parts.delete(node);
    return parts.texts.join("");
  }
}

/** Splits a message into payloads of ASCII, so that one character is one byte. */
function toPayloads(node_no: number, message: number, notifications: Notification[]): string[] {
  const text = JSON.stringify(notifications).replaceAll(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const total = Math.ceil(text.length / LARGEST_PAYLOAD);
  return Array.from(
    { length: total },
    (_, at) => `${node_no} ${message} ${at}/${total} ${text.slice(at * LARGEST_PAYLOAD, (at + 1) * LARGEST_PAYLOAD)}`,
  );
}

/** What processes tell each other. Only ids: receivers read the rows that they need. */
export type Notification =
  /** A process joined or began to follow, so there is somebody to notify. */
  | { kind: "hello"; follows: boolean }
  /** Sessions with actions to claim. */
  | { kind: "work"; session_ids: string[] }
  /** Sessions may be free to be claimed. */
  | { kind: "free" }
  /** Rows of a session after a position, and those of its actions that changed. */
  | SessionNotification
  /** Actions of a session changed, and nothing else of it. */
  | ActionsNotification
  | { kind: "messages"; conversation_id: string; first_number: number }
  /** Text of a running step; `last_seq` is the number of the last one that was joined into it. */
  | DeltaNotification
  | { kind: "unlocked"; name: string }
  | { kind: "release"; release: SessionRelease };
type SessionNotification = {
  kind: "session";
  session_id: string;
  iteration: number;
  error_rows: number;
  actions: string[];
};
type ActionsNotification = { kind: "actions"; session_id: string; actions: string[] };
export type DeltaNotification = { kind: "delta"; delta: StepDelta; last_seq: number };

/** Characters of step text that may wait, of all steps together. */
const MOST_TEXT = 256 * 1024;
/** What a delta costs besides its text, in characters. */
const DELTA_COST = 200;
/** How many truncated steps are remembered. */
const MOST_TRUNCATED = 1000;

/**
 * The queue of notifications to send, bounded however slow the server is.
 *
 * OUTBOX-1  Notifications of rows are never dropped, they are merged: a session, a conversation or a name waits once.
 * OUTBOX-2  Text of a step is merged as well, and where too much waits the rest of the step's text is dropped, after a delta
 *           that is marked `truncated`. So what is sent of a step is always the beginning of its text.
 */
export class Outbox {
  #rows = new Map<string, Waiting>();
  #work = new Set<string>();
  #deltas: DeltaNotification[] = [];
  #text = 0;
  /** By session: the iteration of the step whose text is no longer sent. */
  readonly #truncated = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#rows.size + this.#work.size + this.#deltas.length === 0;
  }

  /** OUTBOX-1. */
  add(notification: Exclude<Notification, DeltaNotification>): void {
    if (notification.kind === "work") for (const id of notification.session_ids) this.#work.add(id);
    else {
      const next =
        notification.kind === "session" || notification.kind === "actions"
          ? { ...notification, actions: new Set(notification.actions) }
          : notification;
      const key = keyOf(next);
      const waiting = this.#rows.get(key);
      this.#rows.set(key, waiting ? merged(waiting, next) : next);
    }
  }

  /** OUTBOX-2. */
  addDelta(delta: StepDelta): void {
    const { session_id, iteration, event_seq } = delta;
    if (event_seq === 0) this.#truncated.delete(session_id); // It starts over.
    if (this.#truncated.get(session_id) === iteration) return;
    const isFull = this.#text + delta.text.length + DELTA_COST > MOST_TEXT;
    const last = this.#deltas.at(-1);
    if (!isFull && last && goesOn(last, delta)) {
      last.delta.text += delta.text;
      last.last_seq = event_seq;
      this.#text += delta.text.length;
      return;
    }
    this.#text += DELTA_COST + (isFull ? 0 : delta.text.length);
    const { tool: _, ...rest } = delta;
    const sent: StepDelta = isFull ? { ...rest, text: "", truncated: true } : { ...delta };
    this.#deltas.push({ kind: "delta", delta: sent, last_seq: event_seq });
    if (!isFull) return;
    if (this.#truncated.size >= MOST_TRUNCATED) this.#truncated.clear();
    this.#truncated.set(session_id, iteration);
  }

  /** Takes everything queued, rows last: text is sent before the step that it belongs to. */
  take(): Notification[] {
    const rows = [...this.#rows.values()].map((waiting) =>
      waiting.kind === "session" || waiting.kind === "actions"
        ? { ...waiting, actions: [...waiting.actions] }
        : waiting,
    );
    const work: Notification[] = this.#work.size > 0 ? [{ kind: "work", session_ids: [...this.#work] }] : [];
    const all = [...this.#deltas, ...rows, ...work];
    this.clear();
    return all;
  }

  clear(): void {
    this.#rows = new Map();
    this.#work = new Set();
    this.#deltas = [];
    this.#text = 0;
  }
}

type WaitingSession = Omit<SessionNotification, "actions"> & { actions: Set<string> };
type WaitingActions = Omit<ActionsNotification, "actions"> & { actions: Set<string> };
type Waiting =
  | Exclude<Notification, DeltaNotification | SessionNotification | ActionsNotification | { kind: "work" }>
  | WaitingSession
  | WaitingActions;

/** Notifications with the same key are merged. */
function keyOf(waiting: Waiting): string {
  switch (waiting.kind) {
    case "session":
    case "actions":
      return `session ${waiting.session_id}`;
    case "messages":
      return `messages ${waiting.conversation_id}`;
    case "unlocked":
      return `unlocked ${waiting.name}`;
    case "release":
      return `release ${JSON.stringify(waiting.release)}`;
    case "hello":
    case "free":
      return waiting.kind;
  }
  return waiting satisfies never;
}

function merged(one: Waiting, other: Waiting): Waiting {
  if (one.kind === "hello" && other.kind === "hello") return { kind: "hello", follows: one.follows || other.follows };
  if (one.kind === "messages" && other.kind === "messages")
    return { ...one, first_number: Math.min(one.first_number, other.first_number) };
  if (isOfSession(one) && isOfSession(other)) {
    for (const id of other.actions) one.actions.add(id);
    return { ...firstOf(one, other), actions: one.actions };
  }
  return other;
}

const isOfSession = (waiting: Waiting): waiting is WaitingSession | WaitingActions =>
  waiting.kind === "session" || waiting.kind === "actions";

/** The earlier position; a notification of actions alone has none. */
function firstOf(
  one: WaitingSession | WaitingActions,
  other: WaitingSession | WaitingActions,
): WaitingSession | WaitingActions {
  if (one.kind === "actions") return other;
  if (other.kind === "actions") return one;
  const order = one.iteration - other.iteration || one.error_rows - other.error_rows;
  return order <= 0 ? one : other;
}

const goesOn = ({ delta: last, last_seq }: DeltaNotification, next: StepDelta): boolean =>
  last.session_id === next.session_id &&
  last.iteration === next.iteration &&
  last_seq + 1 === next.event_seq &&
  last.tool === undefined &&
  next.tool === undefined;

/** How often a waiter tries again in case a notification was lost, in milliseconds. */
const ASK_AGAIN_MS = 250;

/**
 * Locks by name across processes: advisory locks on the pinned connection, which end with the process. PostgreSQL would grant one
 * to the same connection twice, so within the process callers queue up.
 */
export class SharedLocks {
  readonly #connection: NotifyConnection;
  readonly #lock: number;
  readonly #unlocked = new Emitter<[name: string]>();
  readonly #mutexes = new KeyedMutex();

  constructor(connection: NotifyConnection, lock: number) {
    this.#connection = connection;
    this.#lock = lock;
  }

  /** Another process released the name. */
  unlocked(name: string): void {
    this.#unlocked.emit(name);
  }

  withLock<Result>(name: string, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#mutexes.run(name, () => this.#locked(name, work, signal));
  }

  async #locked<Result>(name: string, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    // Shifted so that no name collides with a process's lock, which has the same first key.
    const key = createHash("sha256").update(name).digest().readInt32BE(0) | 0x40_00_00_00;
    while (!(await this.#tryLock(key))) {
      if (signal.aborted) throw closed();
      await this.#released(name);
    }
    try {
      return await work();
    } finally {
      // Not awaited: the connection runs its statements in order.
      void this.#connection
        .query("select pg_advisory_unlock($1, $2)", this.#lock, key)
        .then(() => this.#connection.notify({ kind: "unlocked", name }))
        .catch(() => {});
    }
  }

  async #tryLock(key: number): Promise<boolean> {
    try {
      const [row] = await this.#connection.query("select pg_try_advisory_lock($1, $2) as locked", this.#lock, key);
      return row?.["locked"] === true;
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async #released(name: string): Promise<void> {
    let stop = (): void => {};
    const released = new Promise<void>((resolve) => {
      stop = this.#unlocked.listen((other) => other === name && resolve());
    });
    await Promise.race([released, wait(ASK_AGAIN_MS)]);
    stop();
  }
}
