import type { ActionQueue } from "../../actions/action-queue.ts";
import { Mutex } from "../../concurrency/mutex.ts";
import { newId } from "../../domain/ids.ts";
import type { Session } from "../../domain/session.ts";
import type { Events, RuntimeEvent } from "../../events/events.ts";
import type { Store } from "../../store/store.ts";
import { type AnswerEvent, GrowingAnswer } from "./growing-answer.ts";

const AGENT_ID = "default";
const WATCH_AGAIN_MS = 1000;
const WAS_RESET = "the chat was reset";

export type ChatQuestion = { text: string; user_id: string; request_id?: string };

/**
 * The one chat that everyone who connects shares, alive across restarts. Questions are answered one at a time, so
 * that each gets its own answer.
 */
export class DefaultChat {
  readonly #store: Store;
  readonly #queue: ActionQueue;
  readonly #events: Events;
  readonly #resetListeners = new Set<(session_id: string) => void>();
  readonly #questions = new Mutex();
  readonly #lookUps = new Mutex();
  #reset = new AbortController();
  /** The session of the chat at the last lookup. */
  #session_id: string | undefined;
  #watching = new AbortController();

  constructor(store: Store, queue: ActionQueue, events: Events) {
    this.#store = store;
    this.#queue = queue;
    this.#events = events;
  }

  /** The current session of the chat; created if there is none. */
  session(): Promise<Session> {
    return this.#withLock(async () => {
      const session = (await this.#current()) ?? (await this.#make());
      this.#use(session.session_id);
      return session;
    });
  }

  stop(): void {
    this.#watching.abort();
  }

  /** A fresh chat for everyone. An answer in flight fails; the old chat's history stays. */
  reset(): Promise<void> {
    return this.#withLock(async () => {
      const old = await this.#current();
      // The new session is created first, so that no question finds the old one ending.
      const { session_id } = await this.#make();
      if (old) await this.#queue.submit({ action_type: "agent_destroy", session_id: old.session_id });
      this.#use(session_id, true);
    });
  }

  /**
   * A new chat was created here or by another process. Listeners are told once, by whoever notices first: told again,
   * they would take a question to the new chat for one to the old.
   */
  #use(session_id: string, isReset = this.#store.withLock !== undefined): void {
    if (this.#session_id === session_id) return;
    const isFirst = this.#session_id === undefined;
    this.#session_id = session_id;
    this.#watch(session_id);
    if (isFirst || !isReset) return;
    this.#reset.abort();
    this.#reset = new AbortController();
    for (const listener of this.#resetListeners) listener(session_id);
  }

  /** Another process that serves the same chat may reset it: then the current session ends. */
  #watch(session_id: string): void {
    this.#watching.abort();
    if (!this.#store.withLock) return;
    this.#watching = new AbortController();
    const { signal } = this.#watching;
    void this.#untilEnd(session_id, signal).catch(() => {
      if (!signal.aborted) setTimeout(() => signal.aborted || this.#watch(session_id), WATCH_AGAIN_MS).unref();
    });
  }

  async #untilEnd(session_id: string, signal: AbortSignal): Promise<void> {
    for await (const event of this.#store.follow({ session_id }, signal))
      if (event.kind === "session" && !isUsable(event.session)) return void (await this.session());
  }

  async #current(): Promise<Session | null> {
    const latest = (await this.#store.getAgent(AGENT_ID))?.latest;
    return latest && isUsable(latest) ? latest : null;
  }

  async #make(): Promise<Session> {
    const session_id = `${AGENT_ID}-${newId()}`;
    const outcome = await this.#queue.submit({
      action_type: "agent_create",
      agent_id: AGENT_ID,
      session_id,
      payload: { moniker: "chat" },
    });
    const session = outcome.kind === "accepted" ? await this.#store.getSession(session_id) : null;
    if (!session) throw new Error(`the default chat could not be made: ${JSON.stringify(outcome)}`);
    return session;
  }

  /** Lookups and changes of the chat happen one at a time: two that find none must not create two. */
  #withLock<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#lookUps.run(() => this.#store.withLock?.("default chat", work) ?? work());
  }

  onReset(listener: (session_id: string) => void): () => void {
    this.#resetListeners.add(listener);
    return () => this.#resetListeners.delete(listener);
  }

  /** Waits for its turn, asks, and yields the answer as it arrives. The question stands even if the client leaves. */
  ask(question: ChatQuestion, tell: (event: AnswerEvent) => void | Promise<void>): Promise<void> {
    const ask = () => this.#ask(question, tell);
    return this.#questions.run(() => this.#store.withLock?.("default chat questions", ask) ?? ask());
  }

  async #ask(
    { text, user_id, request_id }: ChatQuestion,
    tell: (event: AnswerEvent) => void | Promise<void>,
  ): Promise<void> {
    const session = await this.session();
    const { session_id } = session;
    const leaving = new AbortController();
    // Listens from here on, before the question can be answered.
    const news = this.#events.follow({ session_id }, AbortSignal.any([leaving.signal, this.#reset.signal]));
    try {
      const problem = await this.#takeUp(session, news);
      if (problem !== null) return await tell({ kind: "failed", message: problem });
      const outcome = await this.#queue.submit({
        action_type: "agent_input",
        session_id,
        payload: { text, user_id },
        // The client's id, so that the fate of the question can be looked up if the connection is lost.
        ...(request_id === undefined ? {} : { metadata: { request_id } }),
      });
      if (outcome.kind !== "accepted")
        return await tell({
          kind: "failed",
          message: outcome.kind === "full" ? outcome.detail : "the chat does not take questions now",
        });
      const answer = new GrowingAnswer(outcome.action_id);
      for (;;) {
        const { value, done } = await news.next();
        if (done) return await tell({ kind: "failed", message: WAS_RESET });
        const events = answer.take(value);
        for (const event of events) await tell(event);
        if (events.some(({ kind }) => kind === "end" || kind === "failed")) return;
      }
    } finally {
      leaving.abort();
    }
  }

  /**
   * A chat that failed or was paused first finishes what it was told before, so that the question gets its own
   * answer. Returns why it cannot, or null.
   */
  async #takeUp({ session_id, status }: Session, news: AsyncIterator<RuntimeEvent>): Promise<string | null> {
    if (status !== "error" && status !== "paused") return null;
    const resumed = await this.#queue.submit({ action_type: "agent_resume", session_id });
    if (resumed.kind !== "accepted") return "the chat cannot be taken up again";
    for (;;) {
      const { value: event, done } = await news.next();
      if (done) return WAS_RESET;
      if (event.kind === "session" && event.session.status === "waiting") return null;
      if (event.kind === "step" && event.step.status === "error") return event.step.error;
      // Another process was faster.
      if (
        event.kind === "action" &&
        event.action.action_id === resumed.action_id &&
        event.action.outcome === "rejected"
      )
        return null;
    }
  }
}

const isUsable = ({ session_id, status }: Session): boolean =>
  session_id.startsWith(AGENT_ID) && !["done", "stopped", "stopping"].includes(status);
