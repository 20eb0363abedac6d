import postgres from "postgres";
import { EverstepError } from "../../domain/errors.ts";
import { closed, isOutOfReach, toStoreError } from "./store-errors.ts";
import type { Scalar } from "./values.ts";

export type Row = Record<string, unknown>;
export type Parameter = Scalar;
type Client = postgres.Sql;

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

/** Milliseconds that a process which stops waits for a server that does not answer. */
export const LAST_SILENCE_MS = 3000;

/**
 * A client that is given up, and replaced by a fresh one, when the server is silent for too long: a connection that was cut
 * on the way may never tell.
 */
export class SteadyClient {
  readonly #open: () => Client;
  readonly #running = new Set<() => void>();
  #silence_ms: number;
  #client: Client;
  #isLast = false;

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
      this.#replace(client);
    };
    const timer = setTimeout(giveUp, this.#silence_ms);
    this.#running.add(giveUp);
    try {
      return await Promise.race([run(client, text, parameters), silence.promise]);
    } finally {
      clearTimeout(timer);
      this.#running.delete(giveUp);
    }
  }

  /** From now on it is given up sooner, also with what it waits for already, and for good. */
  hurry(): void {
    this.#isLast = true;
    this.#silence_ms = LAST_SILENCE_MS;
    const begun = [...this.#running];
    setTimeout(() => {
      for (const giveUp of begun) if (this.#running.has(giveUp)) giveUp();
    }, LAST_SILENCE_MS).unref();
  }

  end(timeout_s: number): Promise<void> {
    return this.#client.end({ timeout: timeout_s });
  }

  #replace(silent: Client): void {
    if (this.#client !== silent) return;
    if (!this.#isLast) this.#client = this.#open();
    void silent.end({ timeout: 0 }).catch(() => {});
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
    const open = () => openClient(url, { max, settings: { synchronous_commit: "off" } });
    this.#client = new SteadyClient(open, SILENCE_MS);
  }

  /** A statement that must not be repeated unseen: where it fails, it may have gone through. */
  async once(text: string, ...parameters: Parameter[]): Promise<Row[]> {
    if (this.#closed) throw closed();
    return this.#client.run(text, parameters).catch((error: unknown) => {
      throw this.#closed ? closed() : toStoreError(error);
    });
  }

  /** A statement that a broken connection may repeat. */
  async query(text: string, ...parameters: Parameter[]): Promise<Row[]> {
    if (this.#closed) throw closed();
    try {
      return await this.#client.run(text, parameters);
    } catch (error) {
      if (this.#closed) throw closed();
      if (!isOutOfReach(error)) throw toStoreError(error);
    }
    // A connection that the server ended is only noticed when it is used; a fresh one tells whether the server is there.
    try {
      return await this.#client.run(text, parameters);
    } catch (error) {
      throw this.#closed ? closed() : toStoreError(error);
    }
  }

  hurry(): void {
    this.#client.hurry();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client.end(2);
  }
}

/** Tells a first connection's failure in words. */
export async function firstConnection(client: Client, url: string): Promise<void> {
  try {
    const [row] = await run(client, "select current_setting('server_version_num')::integer as version");
    if (Number(row?.["version"]) >= OLDEST_VERSION) return;
  } catch (error) {
    throw toStoreError(error);
  }
  throw new EverstepError(
    "store_unavailable",
    `PostgreSQL at ${new URL(url).host} is older than version 13`,
    "use PostgreSQL 13 or newer",
  );
}
const OLDEST_VERSION = 130_000;
