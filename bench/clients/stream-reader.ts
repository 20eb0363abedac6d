import { once } from "node:events";
import { type ClientRequest, get, type IncomingMessage } from "node:http";

const STEP = "event: agent_step\nid: ";

/** Reads a session's server-sent events and counts its steps. */
export class StreamReader implements Disposable {
  count = 0;
  /** Steps that arrived twice or out of order. */
  faults = 0;
  readonly #request: ClientRequest;
  #rest = "";

  private constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request;
    response.setEncoding("utf8").on("data", (text: string) => this.#take(text));
    response.on("error", () => {});
  }

  static async open(port: number, session_id: string): Promise<StreamReader> {
    const path = `/api/sessions/${session_id}/events?after_iteration=-1`;
    const request = get({ port, host: "127.0.0.1", path, agent: false });
    request.on("error", () => {});
    const [response] = (await once(request, "response")) as [IncomingMessage];
    if (response.statusCode !== 200) throw new Error(`${path} answered ${response.statusCode}`);
    return new StreamReader(request, response);
  }

  #take(text: string): void {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    for (const block of blocks) {
      if (!block.startsWith(STEP)) continue;
      const iteration = Number.parseInt(block.slice(STEP.length, STEP.length + 12), 10);
      if (iteration === this.count) this.count += 1;
      else this.faults += 1;
    }
  }

  [Symbol.dispose](): void {
    this.#request.destroy();
  }
}
