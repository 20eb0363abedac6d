import type { Session } from "../../../domain/session.ts";
import {
  type AgentStatus,
  type PlatformClient,
  PlatformError,
  type Recovered,
  type ResetOutcome,
} from "./platform-client.ts";

const PROMPT = /Reply(?: only with)?: ((?:Saved|Loaded): \S+)$/;

const noRuntime = async (): Promise<never> => {
  throw new PlatformError("the mock has no sessions");
};

/** An agent that only repeats what it is told, to try out the bot without a real one. It has no runtime. */
export class MockPlatform implements PlatformClient {
  readonly session_id = "default-mock";
  last_tokens_used = 0;
  #isConnected = false;
  #isBusy = false;

  connect(): void {
    this.#isConnected = true;
  }

  async close(): Promise<void> {
    this.#isConnected = false;
  }

  get status(): AgentStatus {
    return !this.#isConnected ? "away" : this.#isBusy ? "busy" : "ready";
  }

  async ready(): Promise<void> {}

  async *ask(text: string): AsyncGenerator<string, void, undefined> {
    this.#isBusy = true;
    try {
      const answer = PROMPT.exec(text)?.[1] ?? `You said: ${text}`;
      this.last_tokens_used = answer.split(/\s+/).length;
      yield* answer.match(/\S+\s*|\s+/g) ?? [];
    } finally {
      this.#isBusy = false;
    }
  }

  async recover(): Promise<Recovered> {
    return { kind: "unknown" };
  }

  async stop(): Promise<void> {}

  async reset(): Promise<ResetOutcome> {
    return { kind: "reset" };
  }

  async chat(): Promise<null> {
    return null;
  }

  async sessions(): Promise<Session[]> {
    return [];
  }

  async findSessions(): Promise<Session[]> {
    return [];
  }

  async inbox(): Promise<Session[]> {
    return [];
  }

  async submitted(): Promise<null> {
    return null;
  }

  async receipt(): Promise<null> {
    return null;
  }

  control = noRuntime;
  guide = noRuntime;
  answer = noRuntime;
  start = noRuntime;
  fork = noRuntime;
  costs = noRuntime;

  watch(): Disposable {
    return { [Symbol.dispose]() {} };
  }
}
