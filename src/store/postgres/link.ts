import { setTimeout as wait } from "node:timers/promises";
import type postgres from "postgres";
import { openClient, type Parameter, type Row, run } from "./connections.ts";
import { isOutOfReach } from "./store-errors.ts";

/** News between processes. Ids only: rows are read by those who care. */
export type News =
  /** A process joined or begins to follow: there is somebody to tell news to. */
  | { kind: "hello"; follows: boolean }
  /** Sessions with actions to claim. */
  | { kind: "work"; session_ids: string[] }
  /** Sessions may be free to be claimed. */
  | { kind: "free" }
  /** Rows of a session after a position; `actions` are those that changed. */
  | { kind: "session"; session_id: string; iteration: number; error_rows: number; actions: string[] }
  | { kind: "messages"; conversation_id: string; first_number: number }
  | { kind: "delta"; delta: unknown }
  | { kind: "unlocked"; name: string };

/** The server takes payloads of less than 8,000 bytes. */
const LARGEST_PAYLOAD = 7_500;
/** Milliseconds that news may wait for more of it, so that one message carries many. Work waits for nothing. */
const GATHER_MS = 8;
const RECONNECT_MS = 50;
/** A server that does not answer a heartbeat for so many milliseconds is given up, and asked anew on another connection. */
const SILENCE_MS = 4000;

export type LinkListener = { news: (news: News[]) => void; up: () => void; down: () => void };

/**
 * The one connection that is pinned to this process: it listens, it tells others, and the advisory lock on it says that
 * this process lives. It comes back by itself.
 *
 * L1  News is told after the commit it is about, never in its transaction, and many pieces in one message.
 * L2  While the connection is down news is lost; who depends on it reads the rows again once it is up.
 */
export class Link {
  readonly #url: string;
  readonly #channel: string;
  readonly #node_no: number;
  readonly #onUp: (query: Link["query"]) => Promise<void>;
  readonly #listener: LinkListener;
  readonly #parts = new Map<string, string[]>();
  #client: postgres.Sql | undefined;
  #outbox: News[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #lastMessage = 0;
  #closed = false;
  #isUp = false;
  /** News for nobody is not told. */
  hasPeers = true;
  hasFollowers = true;

  constructor(
    url: string,
    { channel, node_no }: { channel: string; node_no: number },
    onUp: (query: Link["query"]) => Promise<void>,
    listener: LinkListener,
  ) {
    this.#url = url;
    this.#channel = channel;
    this.#node_no = node_no;
    this.#onUp = onUp;
    this.#listener = listener;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Throws where the first connection fails; from then on it comes back by itself. */
  async start(): Promise<void> {
    await this.#connect();
  }

  readonly query = async (text: string, ...parameters: Parameter[]): Promise<Row[]> => {
    const client = this.#client;
    if (!client) throw Object.assign(new Error("not connected"), { code: "08003" });
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.#lost(client);
        reject(Object.assign(new Error("the server is silent"), { code: "ETIMEDOUT" }));
      }, SILENCE_MS);
    });
    try {
      return await Promise.race([run(client, text, parameters), silence]);
    } finally {
      clearTimeout(timer);
    }
  };

  /** Whether somebody in another process follows what is committed here. */
  get isHeard(): boolean {
    return this.hasPeers && this.hasFollowers;
  }

  /** L1. */
  tell(news: News): void {
    if (this.#closed || !this.#isUp || !this.hasPeers) return; // L2
    if (!this.isHeard && (news.kind === "session" || news.kind === "messages" || news.kind === "delta")) return;
    this.#outbox.push(news);
    if (news.kind === "work" || news.kind === "free" || news.kind === "unlocked") this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), GATHER_MS);
  }

  /** What was told is still sent. */
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
    // What is told in the same turn of the event loop goes together.
    await new Promise(setImmediate);
    while (this.#outbox.length > 0 && this.#client) {
      const news = this.#outbox;
      this.#outbox = [];
      for (const payload of toPayloads(this.#node_no, ++this.#lastMessage, news)) {
        try {
          await this.query("select pg_notify($1, $2)", this.#channel, payload);
        } catch (error) {
          if (!isOutOfReach(error)) process.emitWarning(error as Error);
          return; // L2
        }
      }
    }
  }

  async #connect(): Promise<void> {
    const client: postgres.Sql = openClient(this.#url, {
      max: 1,
      // What is written here (leases, claims that are freed) may be lost with the server: it is written again.
      settings: { synchronous_commit: "off" },
      onNotify: (_, payload) => this.#receive(payload),
      onClose: () => this.#lost(client),
    });
    this.#client = client;
    try {
      await this.query(`listen "${this.#channel}"`);
      await this.#onUp(this.query);
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
    this.#outbox = [];
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
    if (total === "1") return this.#listener.news(JSON.parse(text) as News[]);
    const key = `${node} ${message}`;
    const parts = this.#parts.get(key) ?? [];
    parts.push(text);
    if (index === "0" || parts.length > 1) this.#parts.set(key, parts);
    if (parts.length < Number(total)) return;
    this.#parts.delete(key);
    this.#listener.news(JSON.parse(parts.join("")) as News[]);
  }
}

/** As many payloads as it takes, of plain ASCII, so that a character is a byte. */
function toPayloads(node_no: number, message: number, news: News[]): string[] {
  const text = JSON.stringify(news).replaceAll(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const total = Math.ceil(text.length / LARGEST_PAYLOAD);
  return Array.from(
    { length: total },
    (_, at) => `${node_no} ${message} ${at}/${total} ${text.slice(at * LARGEST_PAYLOAD, (at + 1) * LARGEST_PAYLOAD)}`,
  );
}
