import { newId } from "../../domain/ids.ts";
import type { Session } from "../../domain/session.ts";
import type { Events } from "../../events/events.ts";
import type { ActionQueue } from "../../queue/submit.ts";
import type { Store } from "../../store/store.ts";

const AGENT_ID = "default";

/** What a question brings: pieces of the answer, then its end, or a failure. */
export type AnswerEvent =
  | { kind: "chunk"; text: string }
  | { kind: "end"; tokens_used: number }
  | { kind: "failed"; message: string };

/**
 * The one chat that everyone who connects shares, alive across restarts. Questions are answered one after the other, so
 * that each gets an answer of its own.
 */
export class DefaultChat {
  readonly #store: Store;
  readonly #queue: ActionQueue;
  readonly #events: Events;
  readonly #resetListeners = new Set<(session_id: string) => void>();
  #line: Promise<unknown> = Promise.resolve();
  #reset = new AbortController();

  constructor(store: Store, queue: ActionQueue, events: Events) {
    this.#store = store;
    this.#queue = queue;
    this.#events = events;
  }

  /** The session that is the chat now; made where there is none. */
  async session(): Promise<Session> {
    const latest = (await this.#store.getAgent(AGENT_ID))?.latest;
    const usable =
      latest && latest.session_id.startsWith(AGENT_ID) && !["done", "stopped", "stopping"].includes(latest.status);
    if (usable) return latest;
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

  /** A fresh chat for everyone. An answer in flight fails; the old chat's history stays. */
  async reset(): Promise<void> {
    const { session_id } = await this.session();
    await this.#queue.submit({ action_type: "agent_destroy", session_id });
    this.#reset.abort();
    this.#reset = new AbortController();
    const created = `${AGENT_ID}-${newId()}`;
    await this.#queue.submit({
      action_type: "agent_create",
      agent_id: AGENT_ID,
      session_id: created,
      payload: { moniker: "chat" },
    });
    for (const listener of this.#resetListeners) listener(created);
  }

  onReset(listener: (session_id: string) => void): () => void {
    this.#resetListeners.add(listener);
    return () => this.#resetListeners.delete(listener);
  }

  /** Waits for its turn, asks, and tells the answer as it comes. A question that was asked stays asked if the asker leaves. */
  ask(text: string, user_id: string, tell: (event: AnswerEvent) => void | Promise<void>): Promise<void> {
    const turn = this.#line.then(() => this.#ask(text, user_id, tell));
    this.#line = turn.catch(() => {});
    return turn;
  }

  async #ask(text: string, user_id: string, tell: (event: AnswerEvent) => void | Promise<void>): Promise<void> {
    const session = await this.session();
    const { session_id } = session;
    const leaving = new AbortController();
    const reset = this.#reset.signal;
    const news = this.#events.follow({ session_id }, AbortSignal.any([leaving.signal, reset]));
    // The first look makes it listen, before the question can be answered.
    let next = news.next();
    if (session.status === "error" || session.status === "paused")
      await this.#queue.submit({ action_type: "agent_resume", session_id });
    const asked = await this.#queue.submit({ action_type: "agent_input", session_id, payload: { text, user_id } });
    if (asked.kind !== "accepted") return tell({ kind: "failed", message: "the chat does not take questions now" });
    let told = "";
    try {
      for (;;) {
        const { value, done } = await next;
        if (done) return await tell({ kind: "failed", message: "the chat was reset" });
        next = news.next();
        const ended = await this.#answerFrom(value, asked.action_id, session, told);
        for (const event of ended) {
          if (event.kind === "chunk") told += event.text;
          await tell(event);
        }
        if (ended.some(({ kind }) => kind !== "chunk")) return;
      }
    } finally {
      leaving.abort();
    }
  }

  /** What one piece of news means for the answer. The joined chunks are exactly the step's text. */
  async #answerFrom(
    event: Awaited<ReturnType<ReturnType<Events["follow"]>["next"]>>["value"],
    action_id: string,
    session: Session,
    told: string,
  ): Promise<AnswerEvent[]> {
    if (!event) return [];
    if (event.kind === "delta") {
      if (event.delta.event_seq === 0 && told !== "")
        return [{ kind: "failed", message: "the answer was cut short and started again" }];
      return [{ kind: "chunk", text: event.delta.text }];
    }
    if (event.kind === "step" && event.step.status === "ok" && event.step.action_ids.includes(action_id)) {
      const text = event.step.text ?? "";
      const rest: AnswerEvent[] = text.length > told.length ? [{ kind: "chunk", text: text.slice(told.length) }] : [];
      if (!text.startsWith(told)) return [{ kind: "failed", message: "the answer changed while it was given" }];
      return [...rest, { kind: "end", tokens_used: event.step.tokens_used }];
    }
    if (event.kind === "step" && event.step.status === "error")
      return [{ kind: "failed", message: event.step.error ?? "the step failed" }];
    if (event.kind === "action" && event.action.action_id === action_id && event.action.receipt === "bounced")
      return [{ kind: "failed", message: event.action.error ?? `session ${session.session_id} ended` }];
    return [];
  }
}
