import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { AgentApi, AgentApiError, AgentBusyError, type SendOptions } from "../../../agent-api/agent-api.ts";
import { Backoff, sleep } from "../../../concurrency/backoff.ts";
import type { Action } from "../../../domain/action.ts";
import type { Session, SessionStatus } from "../../../domain/session.ts";
import { STOP_PROMPT } from "../../../domain/stop-prompt.ts";
import type { Control, CostGroup } from "../state/jobs.ts";
import { awaitReceipt } from "./await-receipt.ts";
import {
  AgentFailedError,
  AgentLostError,
  type AgentStatus,
  type Answer,
  type ChatState,
  type ControlOutcome,
  type Costs,
  type ForkRequest,
  type PlatformClient,
  PlatformError,
  type QuestionRef,
  type Receipt,
  type Recovered,
  type ResetOutcome,
  type Sender,
  type SessionFollower,
  type StartRequest,
} from "./platform-client.ts";
import { RuntimeHttp } from "./runtime-http.ts";
import { askThreadChat } from "./thread-chat.ts";
import { watchSession } from "./watch-session.ts";

const READY_CHECK_MS = 50;
const SETTLE_MS = 5000;

export type RealPlatformOptions = { ws_url: string; base_url: string; token: string | undefined };

/** The agent behind one AgentApi connection, and the HTTP API of its runtime. */
export class RealPlatform implements PlatformClient {
  readonly #api: AgentApi;
  readonly #http: RuntimeHttp;
  readonly #closing = new AbortController();
  #connecting: Promise<void> | undefined;
  #isAsking = false;
  #lastTokens = 0;
  readonly #waiting = new Set<() => void>();

  constructor({ ws_url, base_url, token }: RealPlatformOptions) {
    this.#http = new RuntimeHttp(base_url, token);
    this.#api = new AgentApi("matrix", ws_url, {
      ...(token === undefined ? {} : { token }),
      callback: () => this.#news(),
    });
  }

  connect(): void {
    this.#connecting ??= this.#connect();
  }

  /** An established connection comes back by itself; the first one is retried here. */
  async #connect(): Promise<void> {
    const { signal } = this.#closing;
    const backoff = new Backoff(100, 2000);
    while (!signal.aborted)
      try {
        await this.#api.connect();
        return;
      } catch {
        await backoff.wait(signal);
      }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#api.close();
    await this.#connecting;
    await this.#api.close();
  }

  get status(): AgentStatus {
    return !this.#api.isConnected ? "away" : this.#isAsking || this.#api.isBusy ? "busy" : "ready";
  }

  get session_id(): string | null {
    return this.#api.session_id;
  }

  get last_tokens_used(): number {
    return this.#lastTokens;
  }

  async ready(signal: AbortSignal): Promise<void> {
    while (!this.#api.isConnected && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      await Promise.race([promise, sleep(READY_CHECK_MS, signal)]);
      this.#waiting.delete(resolve);
    }
  }

  #news(): void {
    for (const wake of this.#waiting) wake();
  }

  async *ask(
    text: string,
    request_id: string,
    onRestart: () => void,
    chat: string | null,
  ): AsyncGenerator<string, void, undefined> {
    this.#isAsking = true;
    try {
      if (chat === null) {
        yield* await this.#send(text, { request_id, on_restart: onRestart });
        this.#lastTokens = this.#api.last_tokens_used;
      } else
        this.#lastTokens = yield* askThreadChat(
          { http: this.#http, session_id: chat },
          { text, request_id },
          onRestart,
        );
    } catch (error) {
      if (!(error instanceof AgentApiError)) throw error;
      const isLost = error.code === "disconnected" || error.code === "closed" || error.code === "timeout";
      throw isLost
        ? new AgentLostError(error.message, { cause: error })
        : new AgentFailedError(error.message, { cause: error });
    } finally {
      this.#isAsking = false;
    }
  }

  /** An answer that was cut short here may still be in progress at the agent, which accepts no other question before it ends. */
  async #send(text: string, options: SendOptions): Promise<AsyncGenerator<string, void, undefined>> {
    for (;;)
      try {
        return this.#api.sendMessage(text, options);
      } catch (error) {
        if (!(error instanceof AgentBusyError)) throw error;
        await wait(READY_CHECK_MS);
      }
  }

  /** The runtime keeps every question as an action. An agent without such a record cannot tell. */
  async recover({ request_id, session_id }: QuestionRef): Promise<Recovered> {
    if (session_id === null) return { kind: "unknown" };
    try {
      const action = await this.#findAction(session_id, request_id);
      return action ? await this.#recovered(action) : { kind: "unknown" };
    } catch (error) {
      if (error instanceof PlatformError) return { kind: "unknown" };
      throw error;
    }
  }

  async #recovered(action: Action): Promise<Recovered> {
    if (action.outcome === "rejected" || action.outcome === "failed" || action.receipt === "bounced")
      return { kind: "failed", reason: action.error ?? "the agent did not take the question" };
    if (action.consumed_iteration === null) return this.#isStuck(action.session_id);
    const answer = await this.#http.answerFrom(action.session_id, action.consumed_iteration);
    if (!answer) return this.#isStuck(action.session_id);
    const text = answer.flatMap((step) => step.text ?? []).join("\n\n");
    return { kind: "answered", text, tokens_used: answer.reduce((sum, step) => sum + step.tokens_used, 0) };
  }

  async #isStuck(session_id: string): Promise<Recovered> {
    const [session] = await this.#http.findSessions(session_id);
    return session?.status === "error"
      ? { kind: "failed", reason: session.last_error ?? "the agent failed" }
      : { kind: "pending" };
  }

  async #findAction(session_id: string, request_id: string): Promise<Action | null> {
    const actions = await this.#http.actions(session_id);
    return actions.find(({ metadata }) => metadata["request_id"] === request_id) ?? null;
  }

  async stop(chat: string | null): Promise<void> {
    const session_id = chat ?? this.#api.session_id;
    if (session_id === null) return;
    await this.#http.submit(session_id, "interrupt", { guidance: STOP_PROMPT, mode: "now" }, {});
  }

  reset(): Promise<ResetOutcome> {
    return this.#http.reset();
  }

  async chat(chat: string | null): Promise<ChatState | null> {
    const session_id = chat ?? this.#api.session_id;
    if (session_id === null) return null;
    try {
      const session = await this.#http.session(session_id);
      return session && chatStateOf(session);
    } catch (error) {
      if (error instanceof PlatformError) return null;
      throw error;
    }
  }

  sessions(): Promise<Session[]> {
    return this.#http.sessions();
  }

  findSessions(name: string): Promise<Session[]> {
    return this.#http.findSessions(name);
  }

  async control(session_id: string, verb: Control, user_id: string): Promise<ControlOutcome> {
    return this.#settled(await this.#http.submit(session_id, verb, {}, { user_id }));
  }

  guide(session_id: string, text: string, sender: Sender): Promise<string> {
    return this.#http.submit(session_id, "interrupt", { guidance: text, mode: "next" }, sender);
  }

  /** A request begun before a crash may have arrived: the runtime's client looks it up by its id first. */
  answer(session_id: string, answer: Answer, sender: Sender): Promise<string> {
    return this.#http.submit(session_id, "answer", answer, sender);
  }

  async submitted(session_id: string, request_id: string): Promise<string | null> {
    return (await this.#findAction(session_id, request_id))?.action_id ?? null;
  }

  receipt(session_id: string, action_id: string, signal: AbortSignal): Promise<Receipt | null> {
    return awaitReceipt({ http: this.#http, session_id, action_id }, signal);
  }

  inbox(): Promise<Session[]> {
    return this.#http.inbox();
  }

  async start(request: StartRequest, sender: Sender): Promise<ControlOutcome> {
    return this.#settled(await this.#http.start(request, sender));
  }

  async fork(session_id: string, request: ForkRequest, sender: Sender): Promise<ControlOutcome> {
    return this.#settled(await this.#http.fork(session_id, request, sender));
  }

  costs(by: CostGroup): Promise<Costs> {
    return this.#http.costs(by);
  }

  async #settled(action_id: string): Promise<ControlOutcome> {
    const until = Date.now() + SETTLE_MS;
    for (;;) {
      const { processed, outcome, error } = await this.#http.action(action_id);
      if (processed && outcome !== "ok") return { kind: "rejected", reason: error ?? String(outcome) };
      if (processed || Date.now() > until) return { kind: "done" };
      await wait(READY_CHECK_MS);
    }
  }

  watch(session_id: string, after_iteration: number, follower: SessionFollower): Disposable {
    return watchSession({ http: this.#http, session_id, after_iteration }, follower);
  }
}

const CHAT_STATUSES: Record<SessionStatus, ChatState["status"]> = {
  running: "busy",
  waiting: "ready",
  paused: "paused",
  error: "failed",
  stopping: "failed",
  stopped: "failed",
  done: "failed",
};

const backgroundSchema = z.object({ background: z.array(z.object({ path: z.string() })).catch([]) });

function chatStateOf({ status, question, last_error, context }: Session): ChatState {
  const parsed = backgroundSchema.safeParse(context);
  const paths = parsed.success ? parsed.data.background.map(({ path }) => path) : [];
  return {
    status: status === "waiting" && question !== null ? "asks" : CHAT_STATUSES[status],
    error: status === "error" ? last_error : null,
    loaded: paths.map((path) => path.replace(/^.*\//, "").replace(/\.md$/, "")),
  };
}
