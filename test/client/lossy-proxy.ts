import { once } from "node:events";
import { createServer, request as forward, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to a response on its way back. */
type Fate = "pass" | "lose" | "hold";

/** Sits between a client and the real server. Requests always arrive; responses may not. */
export class LossyProxy implements AsyncDisposable {
  readonly url: string;
  /** Forwarded requests, as `METHOD path`. */
  readonly passed: string[] = [];
  /** Called for each response of the server. */
  fate: (request: IncomingMessage) => Fate = () => "pass";
  readonly #server: Server;
  #open = 0;

  private constructor(server: Server, target: string) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => this.#pass(target, request, response));
  }

  static async before(target: string): Promise<LossyProxy> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new LossyProxy(server, target);
  }

  /** How many responses are in progress. */
  get open(): number {
    return this.#open;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #pass(target: string, request: IncomingMessage, response: ServerResponse): void {
    const { method, url = "", headers } = request;
    this.passed.push(`${method} ${url}`);
    this.#open += 1;
    response.once("close", () => {
      this.#open -= 1;
    });
    const onward = forward(new URL(url, target), { method, headers }, (answer) => {
      const fate = this.fate(request);
      if (fate === "lose") return void response.destroy();
      response.once("close", () => onward.destroy());
      if (fate === "hold") return;
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  }
}
