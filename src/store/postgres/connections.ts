import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { EverstepError } from "../../domain/errors.ts";
import { closed, full, messageOf, outOfReach, readOnly, unanswered, unavailable } from "../store-errors.ts";
import type { Scalar } from "./tables.ts";

export type Row = Record<string, unknown>;
export type Parameter = Scalar;
export type Client = postgres.Sql;

/** The program handles times as ISO 8601 strings and counts as numbers. */
const TYPES = {
  time: { to: 1184, from: [1184], serialize: String, parse: (text: string) => new Date(text).toISOString() },
  bigint: { to: 20, from: [20], serialize: String, parse: Number },
};
const CONNECT_TIMEOUT_S = 5;

export type ClientOptions = {
  max: number;
  /** Settings of the PostgreSQL session. */
  settings?: Record<string, string>;
  onNotify?: (channel: string, payload: string) => void;
  onClose?: () => void;
};

export function openClient(url: string, { max, settings, onNotify, onClose }: ClientOptions): Client {
  const client = postgres(url, {
    max,
    connect_timeout: CONNECT_TIMEOUT_S,
    keep_alive: 10,
    // Reconnects quickly: the server may be back at any moment.
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
    // Without this, a connection that is reconnecting would come up after the end and stay open.
    Object.assign(client.options, { socket: refuse });
  };
  return client;
}

function refuse(): never {
  throw Object.assign(new Error("the client was ended"), { code: "CONNECTION_ENDED" });
}

/** Runs a statement, prepared once per connection. */
export async function run(
  client: Pick<Client, "unsafe">,
  text: string,
  parameters: readonly Parameter[] = [],
): Promise<Row[]> {
  const rows = (await client.unsafe(text, parameters as never[], { prepare: parameters.length > 0 })) as Row[];
  // If the statement before failed after it had sent rows, the driver leaves a hole for each of them at the beginning
  // (github.com/porsager/postgres/issues/1181).
  return 0 in rows ? rows : rows.filter(() => true);
}

/**
 * For every connection except the one that migrates. A statement that waits too long for a lock fails and leaves nothing behind;
 * otherwise the client would give up its connection while the server's backend keeps waiting, again and again.
 */
export const LOCK_TIMEOUT = { lock_timeout: "4s" };
/** How long a statement that collided with another transaction is retried, in milliseconds. */
const COLLISIONS_MS = 5000;
const LONGEST_BACKOFF_MS = 250;

/** The retries of a statement that collided with another transaction. */
export class Collisions {
  readonly #until = performance.now() + COLLISIONS_MS;
  #tries = 0;

  /** Backs off, then tells whether to try again. */
  async mayRepeat(error: unknown): Promise<boolean> {
    if (!isCollision(error) || performance.now() > this.#until) return false;
    // Random, so that two statements that collided do not collide again.
    await wait(Math.random() * Math.min(2 ** this.#tries++, LONGEST_BACKOFF_MS));
    return true;
  }
}

/**
 * Calls back after this many milliseconds without counting time in which the event loop was blocked: answers that arrived
 * meanwhile are read before the server is considered silent.
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

/** How long a stopping process waits for a server that does not answer, in milliseconds. */
export const LAST_SILENCE_MS = 3000;

/** Seconds that statements on a client's other connections get once one of its connections has broken. */
const GRACE_S = 2;

/**
 * A client that is replaced by a fresh one when one of its connections breaks or the server is silent for too long: a connection
 * that was cut somewhere on the network may never report an error.
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

  /** From now on a silent server is given up sooner and for good; that includes statements already under way. */
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
    // A server that is silent while the process stops is not asked again.
    if (this.#isLast && grace_s === 0) this.#hasEnded = true;
    else this.#client = this.#open();
    void broken.end({ timeout: grace_s }).catch(() => {});
  }
}

/** Milliseconds after which a read or a claim counts as lost: longer than any of them takes. */
const SILENCE_MS = 30_000;

/** For reads, and for writes that may be repeated or lost with the server, such as claims. Commits go through `GroupWriter`. */
export class Pool {
  readonly #client: SteadyClient;
  #closed = false;

  constructor(url: string, max: number) {
    // Nothing written here is promised to survive a crash of the server.
    const open = () => openClient(url, { max, settings: { synchronous_commit: "off", ...LOCK_TIMEOUT } });
    this.#client = new SteadyClient(open, SILENCE_MS);
  }

  /** Runs a statement at most once. If it fails, it may have taken effect. */
  once(text: string, ...parameters: Parameter[]): Promise<Row[]> {
    return this.#run(text, parameters, false);
  }

  /** Runs a statement that is repeated once if its connection turns out to be broken. */
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
        // A connection that the server closed is noticed only when it is used; a fresh one tells whether the server is there.
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

/** Checks that the server answers and is new enough; fails with a message that says what is wrong. */
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
/** How long to wait for a server that accepts the connection but never answers, in milliseconds. */
const FIRST_SILENCE_MS = 10_000;

const READ_AGAIN_MS = 200;

/** Repeats a follower's read until the server is back. Returns nothing once the signal is aborted. */
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

/** An error of the driver or the server. Only the server's have a severity. */
export type Failure = { code?: unknown; severity?: unknown };

/** Errors after which the same request may succeed a little later. */
const OUT_OF_REACH =
  /^(?:08|57P0|53[023]|58|25P03)|^(?:ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EMFILE|CONN)/;
/**
 * Another transaction or a time limit was in the way: deadlock, serialization failure, lock timeout, cancelled statement, or an id
 * that was inserted meanwhile.
 */
const COLLISION = /^(?:40P01|40001|55P03|57014|23505)$/;

const failureOf = (error: unknown): Failure => (typeof error === "object" && error !== null ? error : {});
const codeOf = (error: unknown): string => {
  const { code } = failureOf(error);
  return typeof code === "string" ? code : "";
};

/** The error also closed the connection. */
const endedConnection = (error: unknown): boolean => {
  const { severity } = failureOf(error);
  return severity === "FATAL" || severity === "PANIC";
};

export const isOutOfReach = (error: unknown): boolean => OUT_OF_REACH.test(codeOf(error)) || endedConnection(error);

/** The connection could not be made, so the statement was never sent. */
export const wasNotSent = (error: unknown): boolean =>
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EMFILE|CONNECT_TIMEOUT|57P03|53300)$/.test(
    codeOf(error),
  );

/** The server reported that the statement failed, so it had no effect. Any other failure leaves that in doubt. */
export const wasRefused = (error: unknown): boolean =>
  failureOf(error).severity === "ERROR" && !/^08|^40003$/.test(codeOf(error));

export const isCollision = (error: unknown): boolean => wasRefused(error) && COLLISION.test(codeOf(error));
/** A collision caused by what is written, not by when. */
export const isDuplicate = (error: unknown): boolean => codeOf(error) === "23505";

/** Turns a driver's error into one with a code and a next move. */
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

/** Wrong user, password or database, or a missing privilege. */
const NOT_LET_IN = /^(?:28P01|28000|3D000|42501)$/;
/** Retrying does not help: the server will refuse the connection again. */
export const isNotLetIn = (error: unknown): boolean => NOT_LET_IN.test(codeOf(error));

/** Returns the server's version if it is new enough. Changes nothing in the database. */
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
