import type { CommittedEvent } from "../domain/event.ts";

/** `number` is a message's place in its conversation, where the engine tells it. */
type Listener = (event: CommittedEvent, number?: number) => void;

/** What was just committed, handed to those who listen to its session, its conversation, or to everything. */
export class CommitFeed {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #gapListeners = new Set<() => void>();

  /** `gap` is called where something may have been committed that was not handed on. */
  listen(channel: string, listener: Listener, gap: () => void = () => {}): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    this.#gapListeners.add(gap);
    return () => {
      listeners.delete(listener);
      this.#gapListeners.delete(gap);
      if (listeners.size === 0 && this.#listeners.get(channel) === listeners) this.#listeners.delete(channel);
    };
  }

  /** The channels that somebody listens to. */
  get channels(): ReadonlyMap<string, unknown> {
    return this.#listeners;
  }

  gap(): void {
    for (const listener of this.#gapListeners) listener();
  }

  /** In the order of the commits. */
  publish(event: CommittedEvent, number?: number): void {
    if (this.#listeners.size === 0) return;
    for (const channel of [channelOf(event), ALL_CHANNEL]) {
      for (const listener of this.#listeners.get(channel) ?? []) listener(event, number);
    }
  }
}

export const ALL_CHANNEL = "all";
export const sessionChannel = (session_id: string): string => `session:${session_id}`;
export const conversationChannel = (conversation_id: string): string => `conversation:${conversation_id}`;

function channelOf(event: CommittedEvent): string {
  switch (event.kind) {
    case "step":
      return sessionChannel(event.step.session_id);
    case "session":
      return sessionChannel(event.session.session_id);
    case "action":
      return sessionChannel(event.action.session_id);
    case "message":
      return conversationChannel(event.message.conversation_id);
  }
  return event satisfies never;
}
