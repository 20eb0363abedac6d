import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { EverstepError } from "../../domain/errors.ts";
import { closed, full, messageOf, outOfReach, readOnly, unanswered, unavailable } from "../store-errors.ts";
import type { Scalar } from "./tables.ts";

export type Row = Record<string, unknown>;
export type Parameter = Scalar;
export type Client = postgres.Sql;

/** Times are ISO 8601 texts in the whole program, counts are numbers. */
const TYPES = {
  time: { to: 1184, from: [1184], serialize: String, parse: (text: string) => new Date(text).toISOString() },
  bigint: { to: 20, from: [20], serialize: String, parse: Number },
};
const CONNECT_TIMEOUT_S = 5;

export type ClientOptions = {
  max: number;
  /** Settings of the session. */
  settings?: Record<string, string>;
  onNotify?: (channel: string, payload: string) => void;
  onClose?: () => void;
};

export function openClient(url: string, { max, settings, onNotify, onClose }: ClientOptions): Client {
  const client = postgres(url, {
    max,
    connect_timeout: CONNECT_TIMEOUT_S,
    keep_alive: 10,
    // A short wait before each new attempt: the server may be back at any moment.
    backoff: (retries: number) => Math.min(0.05 * 1.5 ** Math.min(retries, 20), 1),
    max_lifetime: null,
    fetch_types: false,
    types: TYPES as never,
    onnotice: () => {},
    ...(onNotify && { onnotify: onNotify }),
    ...(onClose && { onclose: onClose }),
    connection: { application_name: "everstep", TimeZone: "UTC", ...settings },
  } as postgres.Options<Record<string, never>>);
  const end = client.end.bind(client);
  client.end = async (ending) => {
    await end(ending);
    // A connection that was about to come back would do so after the end, and stay.
    Object.assign(client.options, { socket: refuse });
  };
  return client;
}

function refuse(): never {
  throw Object.assign(new Error("the client was ended"), { code: "CONNECTION_ENDED" });
}

/** Runs a statement that is prepared once per connection. */
export async function run(
  client: Pick<Client, "unsafe">,
  text: string,
  parameters: readonly Parameter[] = [],
): Promise<Row[]> {
  return (await client.unsafe(text, parameters as never[], { prepare: parameters.length > 0 })) as Row[];
}

/**
 * For everyone but who migrates: a wait for somebody else's lock ends in an error that leaves nothing behind. The connection
 * would else be given up some time, and the server would go on waiting with one backend after the other.
 */
export const LOCK_TIMEOUT = { lock_timeout: "4s" };
/** Milliseconds for which what another transaction was in the way of is tried again. */
const COLLISIONS_MS = 5000;
const LONGEST_BACKOFF_MS = 250;

/** How often and until when a statement is tried again that met another transaction. */
export class Collisions {
  readonly #until = performance.now() + COLLISIONS_MS;
  #tries = 0;

  /** Waits a little and answers whether it is worth another try. */
  async mayRepeat(error: unknown): Promise<boolean> {
    if (!isCollision(error) || performance.now() > this.#until) return false;
    // At random, so that two who met do not meet again.
    await wait(Math.random() * Math.min(2 ** this.#tries++, LONGEST_BACKOFF_MS));
    return true;
  }
}

/**
 * Calls back when so many milliseconds have passed in which the event loop turned. After it was blocked, what came in meanwhile is
 * taken in before anybody is taken for silent.
 */
export function onSilence(ms: number, giveUp: () => void): () => void {
  let left = SILENCE_PARTS;
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) return;
    clearInterval(timer);
    giveUp();
  }, ms / SILENCE_PARTS);
  return () => clearInterval(timer);
}
const SILENCE_PARTS = 4;

/** Milliseconds that a process which stops waits for a server that does not answer. */
export const LAST_SILENCE_MS = 3000;

/** Seconds that others on a client may still take when one of its connections broke. */
const GRACE_S = 2;

/**
 * A client that is given up, and replaced by a fresh one, when one of its connections breaks, or when the server is silent for
 * too long: a connection that was cut on the way may never tell.
 */
export class SteadyClient {
  readonly #open: () => Client;
  readonly #running = new Set<() => void>();
  #silence_ms: number;
  #client: Client;
  #isLast = false;
  #hasEnded = false;

  constructor(open: () => Client, silence_ms: number) {
    this.#open = open;
    this.#silence_ms = silence_ms;
    this.#client = open();
  }

  async run(text: string, parameters: readonly Parameter[] = []): Promise<Row[]> {
    const client = this.#client;
    const silence = Promise.withResolvers<never>();
    const giveUp = (): void => {
      silence.reject(Object.assign(new Error("the server is silent"), { code: "ETIMEDOUT" }));
      this.#replace(client, 0);
    };
    const stop = onSilence(this.#silence_ms, giveUp);
    this.#running.add(giveUp);
    try {
      return await Promise.race([run(client, text, parameters), silence.promise]);
    } catch (error) {
      if (!wasRefused(error)) this.#replace(client, GRACE_S);
      throw error;
    } finally {
      stop();
      this.#running.delete(giveUp);
    }
  }

  /** From now on it is given up sooner, also with what it waits for already, and for good. */
  prepareToStop(): void {
    this.#isLast = true;
    this.#silence_ms = LAST_SILENCE_MS;
    const begun = [...this.#running];
    setTimeout(() => {
      for (const giveUp of begun) if (this.#running.has(giveUp)) giveUp();
    }, LAST_SILENCE_MS).unref();
  }

  end(timeout_s: number): Promise<void> {
    this.#hasEnded = true;
    return this.#client.end({ timeout: timeout_s });
  }

  #replace(broken: Client, grace_s: number): void {
    if (this.#client !== broken || this.#hasEnded) return;
    // One that was silent to the last is not asked again.
    if (this.#isLast && grace_s === 0) this.#hasEnded = true;
    else this.#client = this.#open();
    void broken.end({ timeout: grace_s }).catch(() => {});
  }
}

/** Milliseconds after which a read or a claim is taken for lost: longer than any of them takes. */
const SILENCE_MS = 30_000;

/** Reads, and writes that may be repeated or lost with the server: claims, releases. Commits have a writer of their own. */
export class Pool {
  readonly #client: SteadyClient;
  #closed = false;

  constructor(url: string, max: number) {
    // What a crash of the server takes back here was not promised: claims die with their process anyway.
    const open = () => openClient(url, { max, settings: { synchronous_commit: "off", ...LOCK_TIMEOUT } });
    this.#client = new SteadyClient(open, SILENCE_MS);
  }

  /** A statement that must not be repeated unseen: where it fails, it may have gone through. */
  once(text: string, ...parameters: Parameter[]): Promise<Row[]> {
    return this.#run(text, parameters, false);
  }

  /** A statement that a broken connection may repeat. */
  query(text: string, ...parameters: Parameter[]): Promise<Row[]> {
    return this.#run(text, parameters, true);
  }

  async #run(text: string, parameters: readonly Parameter[], mayRepeat: boolean): Promise<Row[]> {
    const collisions = new Collisions();
    for (let isFresh = !mayRepeat; ; ) {
      if (this.#closed) throw closed();
      try {
        return await this.#client.run(text, parameters);
      } catch (error) {
        if (await collisions.mayRepeat(error)) continue;
        if (this.#closed) throw closed();
        if (isFresh || !isOutOfReach(error)) throw toStoreError(error);
        // A connection that the server ended is only noticed when it is used; a fresh one tells whether the server is there.
        isFresh = true;
      }
    }
  }

  prepareToStop(): void {
    this.#client.prepareToStop();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client.end(2);
  }
}

/** Tells a first connection's failure in words. */
export async function firstConnection(client: Client, url: string): Promise<void> {
  const silence = Promise.withResolvers<never>();
  const stop = onSilence(FIRST_SILENCE_MS, () => silence.reject(unanswered()));
  try {
    const version = run(client, "select current_setting('server_version_num')::integer as version");
    const [row] = await Promise.race([version, silence.promise]);
    if (Number(row?.["version"]) >= OLDEST_VERSION) return;
  } finally {
    stop();
  }
  throw new EverstepError(
    "store_older",
    `PostgreSQL at ${new URL(url).host} is older than version 13`,
    "use PostgreSQL 13 or newer",
  );
}
const OLDEST_VERSION = 130_000;
/** Something that takes connections and says nothing is not waited for longer. */
const FIRST_SILENCE_MS = 10_000;

const READ_AGAIN_MS = 200;

/** A reader who follows waits for a server that is out of reach. Nothing once the signal aborted. */
export async function retryRead<Result>(read: () => Promise<Result[]>, signal: AbortSignal): Promise<Result[]> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (signal.aborted) return [];
      if (!(error instanceof EverstepError)) throw error;
      await wait(READ_AGAIN_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** What a driver's or a server's error has. Servers' own have a severity. */
export type Failure = { code?: unknown; severity?: unknown };

/** States of the server in which the same request may succeed a little later. */
const OUT_OF_REACH =
  /^(?:08|57P0|53[023]|58|25P03)|^(?:ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EMFILE|CONN)/;
/**
 * Another transaction or a time limit was in the way: deadlock, serialization, a lock that was not to be had, a statement that was
 * cancelled, an id inserted meanwhile.
 */
const COLLISION = /^(?:40P01|40001|55P03|57014|23505)$/;

const failureOf = (error: unknown): Failure => (typeof error === "object" && error !== null ? error : {});
const codeOf = (error: unknown): string => {
  const { code } = failureOf(error);
  return typeof code === "string" ? code : "";
};

/** The server ended the connection along with the statement. */
const endedConnection = (error: unknown): boolean => {
  const { severity } = failureOf(error);
  return severity === "FATAL" || severity === "PANIC";
};

export const isOutOfReach = (error: unknown): boolean => OUT_OF_REACH.test(codeOf(error)) || endedConnection(error);

/** The connection was not made, so nothing was asked of the server. */
export const wasNotSent = (error: unknown): boolean =>
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EMFILE|CONNECT_TIMEOUT|57P03|53300)$/.test(
    codeOf(error),
  );

/** The server answered that the statement failed, so nothing of it is left. Any other failure leaves it in doubt. */
export const wasRefused = (error: unknown): boolean =>
  failureOf(error).severity === "ERROR" && !/^08|^40003$/.test(codeOf(error));

export const isCollision = (error: unknown): boolean => wasRefused(error) && COLLISION.test(codeOf(error));
/** A collision that comes from what is written, not from when. */
export const isDuplicate = (error: unknown): boolean => codeOf(error) === "23505";

/** What the driver threw, as an error with a next move. */
export function toStoreError(error: unknown): EverstepError {
  if (error instanceof EverstepError) return error;
  const code = codeOf(error);
  const why = messageOf(error);
  if (code.startsWith("531")) return full(`PostgreSQL has no room left (${why})`, error, "free some on its disk");
  if (code === "25006")
    return readOnly("PostgreSQL takes no writes", "point EVERSTEP_STORE at the primary server", error);
  if (NOT_LET_IN.test(code))
    return unavailable(
      `PostgreSQL refuses the connection (${why})`,
      "check user, password, database and grants in EVERSTEP_STORE",
      error,
    );
  if (isCollision(error))
    return unavailable(
      `PostgreSQL could not do it in time (${why})`,
      "look for a transaction that holds locks, or a short statement_timeout; Everstep goes on by itself",
      error,
    );
  if (wasRefused(error))
    return new EverstepError(
      "store_refused",
      `PostgreSQL refused a statement (SQLSTATE ${code}: ${why})`,
      "look at the server's log; nothing of the statement was stored",
      error,
    );
  return outOfReach(why, error);
}

/** Wrong user, password or database, or a right that is missing. */
const NOT_LET_IN = /^(?:28P01|28000|3D000|42501)$/;
/** A server that does not let us in does not do so a little later, either. */
export const isNotLetIn = (error: unknown): boolean => NOT_LET_IN.test(codeOf(error));

/** The version of a server that answers and is new enough. Nothing in the database is touched. */
export async function inspectDatabase(url: string): Promise<{ server_version: string }> {
  const client = openClient(url, { max: 1 });
  try {
    await firstConnection(client, url);
    const [row] = await run(client, "select current_setting('server_version') as version");
    return { server_version: String(row?.["version"]) };
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await client.end({ timeout: 0 });
  }
}
