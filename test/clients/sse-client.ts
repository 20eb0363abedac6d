import { within } from "../within.ts";

type Received = { event: string; data: unknown; id: string };
const WAIT_MS = 60_000;

/** A stream of server-sent events, read line by line; keeps what a browser would hide, such as comments. */
export class SseClient implements AsyncDisposable {
  readonly received: Received[] = [];
  comments = 0;
  /** The value for `Last-Event-ID`. */
  last_id = "";
  readonly ended: Promise<void>;
  readonly #leaving = new AbortController();
  readonly #listeners = new Set<() => void>();

  private constructor(response: Response) {
    this.ended = this.#read(response).catch(() => {});
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<SseClient> {
    const response = await fetch(url, { headers });
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
    return new SseClient(response);
  }

  of<Payload>(event: string): Payload[] {
    return this.received.filter((one) => one.event === event).map(({ data }) => data as Payload);
  }

  async until<Value>(what: string, fits: () => Value | undefined | false): Promise<Value> {
    const { promise, resolve } = Promise.withResolvers<Value>();
    const look = () => {
      const value = fits();
      if (value !== undefined && value !== false) resolve(value);
    };
    this.#listeners.add(look);
    look();
    return within(WAIT_MS, promise, () => `not told: ${what}`).finally(() => this.#listeners.delete(look));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort();
    await this.ended;
  }

  async #read({ body }: Response): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    const reader = body?.getReader();
    this.#leaving.signal.addEventListener("abort", () => void reader?.cancel().catch(() => {}));
    for (;;) {
      const chunk = await reader?.read();
      if (!chunk || chunk.done) return;
      text += decoder.decode(chunk.value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) this.#take(block);
      for (const listener of this.#listeners) listener();
    }
  }

  #take(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split("\n")) {
      const [, name = "", value = ""] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
      if (name === "") this.comments += 1;
      else fields.set(name, value);
    }
    this.last_id = fields.get("id") ?? this.last_id;
    const data = fields.get("data");
    if (data !== undefined)
      this.received.push({ event: fields.get("event") ?? "message", data: JSON.parse(data), id: this.last_id });
  }
}
