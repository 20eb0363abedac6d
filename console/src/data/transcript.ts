import { get, pathOf } from "./api.ts";
import { follow, type MessageDelta } from "./live.ts";
import type { Message } from "./queries.ts";
import { Signal } from "./signal.ts";

export type Speaking = { session_id: string; iteration: number; text: string };
export type TranscriptState = {
  messages: Message[];
  /** Text that agents are streaming. */
  speaking: ReadonlyMap<string, Speaking>;
  isLoading: boolean;
  error: Error | null;
};

const PAGE = 500;

/** All messages of a conversation, live. After a lost connection it continues after its last message. */
export class Transcript {
  readonly state = new Signal<TranscriptState>({ messages: [], speaking: new Map(), isLoading: true, error: null });
  readonly #conversation_id: string;
  readonly #messagesById = new Map<string, Message>();
  #stop: (() => void) | undefined;
  #isClosed = false;

  constructor(conversation_id: string) {
    this.#conversation_id = conversation_id;
  }

  async open(): Promise<void> {
    const path = pathOf("conversations", this.#conversation_id, "messages");
    try {
      for (let offset = 0; ; offset += PAGE) {
        const { messages } = await get<{ messages: Message[] }>(path, { limit: PAGE, offset });
        for (const message of messages) this.#messagesById.set(message.message_id, message);
        if (messages.length < PAGE) break;
      }
      this.#show({ isLoading: false });
      if (!this.#isClosed) this.#follow();
    } catch (error) {
      this.#set({ isLoading: false, error: error as Error });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stop?.();
  }

  #follow(): void {
    const conversation_id = this.#conversation_id;
    const last = () => [...this.#messagesById.keys()].at(-1) ?? "";
    this.#stop = follow(() => ({ conversation_id, after: last() }), {
      conversation_message: (message) => {
        if (message.conversation_id !== conversation_id) return;
        this.#messagesById.set(message.message_id, message);
        this.#show({ speaking: this.#without(message.session_id) });
      },
      conversation_message_delta: (delta) => this.#streamed(delta),
    });
  }

  #streamed({ conversation_id, session_id, iteration, event_seq, text }: MessageDelta): void {
    if (conversation_id !== this.#conversation_id) return;
    const speaking = new Map(this.state.value.speaking);
    const before = speaking.get(session_id);
    const goesOn = before?.iteration === iteration && event_seq > 0;
    speaking.set(session_id, { session_id, iteration, text: goesOn ? before.text + text : text });
    this.#set({ speaking });
  }

  #without(session_id: string | null): TranscriptState["speaking"] {
    return new Map([...this.state.value.speaking].filter(([id]) => id !== session_id));
  }

  #show(changes: Partial<TranscriptState>): void {
    this.#set({ messages: [...this.#messagesById.values()], ...changes });
  }

  #set(changes: Partial<TranscriptState>): void {
    if (!this.#isClosed) this.state.set({ ...this.state.value, ...changes });
  }
}
