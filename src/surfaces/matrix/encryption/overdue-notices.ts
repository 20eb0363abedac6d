import type { Logger } from "pino";
import { catalogue } from "../catalogue/catalogue.ts";
import { threadOf } from "../events/converter.ts";
import { plainNotice } from "../outgoing/plain-notice.ts";
import type { BotState } from "../state/bot-state.ts";
import type { Globs } from "../text/globs.ts";

/** How long a key may take to arrive before the sender is told. */
const TOLD_AFTER_MS = 30_000;

export type OverdueNoticesOptions = {
  state: BotState;
  isAllowed: Globs;
  /** The outbox has something new. */
  onOutbox: () => void;
  log: Logger;
};

/** Tells people that the key of their message has not arrived. It uses a timer, since nothing may happen in a quiet room. */
export class OverdueNotices implements Disposable {
  readonly #options: OverdueNoticesOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: OverdueNoticesOptions) {
    this.#options = options;
  }

  /** To be called after each sync: sends what is due and waits for the next. */
  refresh(): void {
    clearTimeout(this.#timer);
    this.#tell(Date.now() - TOLD_AFTER_MS);
    const oldest = this.#options.state.undecrypted.oldestUntold();
    if (oldest === null) return;
    this.#timer = setTimeout(() => this.#onTimer(), oldest + TOLD_AFTER_MS - Date.now() + 1);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  /** If the state cannot be written, the next sync tries again. */
  #onTimer(): void {
    try {
      this.refresh();
    } catch (error) {
      this.#options.log.error({ err: error }, "a sender could not be told of a missing key");
    }
  }

  #tell(before: number): void {
    const { state, isAllowed, onOutbox } = this.#options;
    const events = state.transaction(() => {
      const overdue = state.undecrypted.takeOverdue(before).filter(({ sender }) => isAllowed(sender));
      for (const { room_id, event_id, sender, content } of overdue) {
        const { undecryptable } = catalogue(state.people.settings(sender).language);
        state.outbox.add(room_id, plainNotice(undecryptable, event_id), { thread: threadOf(content) });
      }
      return overdue;
    });
    if (events.length > 0) onOutbox();
  }
}
