import type { Logger } from "pino";
import { catalogue } from "../catalogue/catalogue.ts";
import type { HandlerContext } from "../handlers/handler.ts";
import { openDialog } from "../outgoing/open-dialog.ts";
import type { Outgoing } from "../outgoing/outgoing.ts";
import { plainNotice, reasonOf } from "../outgoing/plain-notice.ts";
import { splitContent } from "../outgoing/split-content.ts";
import type { BotState } from "../state/bot-state.ts";
import type { InboxRow } from "../state/inbox.ts";
import { isStateFault } from "../state/state-fault.ts";
import type { Bot } from "../text/body-text.ts";
import type { Globs } from "../text/globs.ts";
import type { RoomEvent } from "../transport/room-event.ts";
import type { ChatOf } from "./chat-of.ts";
import { fromRoomEvent, threadOf } from "./converter.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { Incoming } from "./incoming.ts";

export type InboxWorkerOptions = {
  state: BotState;
  dispatcher: Dispatcher;
  bot: Bot;
  isAllowed: Globs;
  chatOf: ChatOf;
  context: Omit<HandlerContext, "state" | "say">;
  log: Logger;
};

/** Handles journalled events in order; each event and everything that follows from it is one transaction. */
export class InboxWorker {
  readonly #options: InboxWorkerOptions;

  constructor(options: InboxWorkerOptions) {
    this.#options = options;
  }

  /** Handles everything in the inbox. */
  work(): void {
    const { state, log } = this.#options;
    for (let row = state.inbox.next(); row; row = state.inbox.next()) {
      const { position, event } = row;
      try {
        state.transaction(() => {
          this.#handle(event);
          state.inbox.done(position);
        });
      } catch (error) {
        // The event is not at fault: it is handled again when the state can be written.
        if (isStateFault(error)) throw error;
        log.error({ err: error, event_id: event.event_id }, "an event could not be handled and was set aside");
        this.#setAside(row, error);
      }
    }
  }

  /** An event that cannot be handled must not block all others. Handlers are plain functions, so it would fail again. */
  #setAside({ position, event }: InboxRow, error: unknown): void {
    const { state } = this.#options;
    const say = catalogue(state.people.settings(event.sender).language);
    state.transaction(() => {
      state.inbox.setAside(position, reasonOf(error));
      const content = plainNotice(say.set_aside(reasonOf(error)), event.event_id);
      state.outbox.add(event.room_id, content, { thread: threadOf(event.content) });
    });
  }

  #handle(event: RoomEvent): void {
    const { bot, isAllowed, dispatcher, context, state } = this.#options;
    const converted = isAllowed(event.sender) ? fromRoomEvent(event, bot) : null;
    if (!converted) return;
    const incoming = this.#placed(converted);
    const say = catalogue(state.people.settings(incoming.user_id).language);
    for (const outgoing of dispatcher.dispatch(incoming, { ...context, state, say })) this.#say(incoming, outgoing);
  }

  /** A reaction or an edit does not name its thread: it is that of its target. */
  #placed(incoming: Incoming): Incoming {
    const { state, chatOf } = this.#options;
    const target = incoming.kind === "callback" ? state.outbox.findByEvent(incoming.target) : null;
    const thread = target ? threadOf(target.content) : incoming.thread;
    return { ...incoming, thread, chat: chatOf(incoming.room_id, thread) };
  }

  #say(to: Incoming, outgoing: Outgoing): void {
    const { state } = this.#options;
    const say = catalogue(state.people.settings(to.user_id).language);
    if (outgoing.kind === "ui") return openDialog(state, say, to, outgoing);
    const { room_id, thread } = to;
    for (const content of splitContent(outgoing.text, outgoing)) state.outbox.add(room_id, content, { thread });
  }
}
