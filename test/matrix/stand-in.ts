import type { ServerFrame } from "../../src/agent-api/messages.ts";
import { StandInAgent } from "../agent-ws/stand-in-agent.ts";
import { within } from "../within.ts";

type Request = { text: string; request_id?: string };

/** An agent whose answers the test writes, word by word. */
export class WrittenAgent implements AsyncDisposable {
  readonly port: number;
  readonly #agent: StandInAgent;
  readonly #first: number;

  private constructor(agent: StandInAgent) {
    this.#agent = agent;
    this.#first = agent.received.length;
    this.port = agent.port;
  }

  static async open(port = 0): Promise<WrittenAgent> {
    return new WrittenAgent(await StandInAgent.open(undefined, port));
  }

  /** The same agent, as if it had not been asked anything yet. */
  anew(): WrittenAgent {
    return new WrittenAgent(this.#agent);
  }

  get url(): string {
    return this.#agent.url;
  }

  /** All questions it was asked. */
  get asked(): string[] {
    return this.#agent.received.slice(this.#first).map(({ text }) => text);
  }

  /** Waits for the question with this number, from 0, and resolves with the means to answer it. */
  async question(number: number): Promise<Answering> {
    const { received } = this.#agent;
    const at = this.#first + number;
    await within(
      60_000,
      this.#agent.until(() => received.length > at),
      () => `no question ${number}: ${this.asked.join()}`,
    );
    const { text, request_id } = received[at] as Request;
    const tag = request_id === undefined ? {} : { request_id };
    const send = (frame: ServerFrame) => this.#agent.send(frame);
    return {
      text,
      say: (words) => send({ type: "event_text_chunk", text: words, ...tag }),
      end: (words = "", tokens_used = 0) => {
        if (words !== "") send({ type: "event_text_chunk", text: words, ...tag });
        send({ type: "event_end", tokens_used, ...tag });
      },
      fail: (message) => send({ type: "error", code: "agent_error", message, ...tag }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent[Symbol.asyncDispose]();
  }
}

export type Answering = {
  text: string;
  say(words: string): void;
  end(words?: string, tokens_used?: number): void;
  fail(message: string): void;
};
