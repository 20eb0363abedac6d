import type { Logger } from "pino";
import { Backoff, sleep } from "../../concurrency/backoff.ts";
import { catalogue } from "./catalogue/catalogue.ts";
import type { Encryption } from "./encryption/encryption.ts";
import { splitContent } from "./outgoing/split-content.ts";
import type { BotState } from "./state/bot-state.ts";
import type { Globs } from "./text/globs.ts";
import { failureOf } from "./transport/failure.ts";
import type { Homeserver } from "./transport/homeserver.ts";
import type { Sender } from "./transport/sender.ts";
import type { Invite } from "./transport/sync-loop.ts";

export type InvitationsOptions = {
  homeserver: Homeserver;
  state: BotState;
  sender: Sender;
  encryption: Encryption | null;
  isAllowed: Globs;
  log: Logger;
  signal: AbortSignal;
};

/** Joins rooms that allowed people invite the bot to, and replacements of upgraded rooms. Other invites stay open: a later start may allow them. */
export class Invitations {
  readonly #options: InvitationsOptions;
  readonly #joining = new Map<string, Promise<void>>();
  /** Replacement rooms that the bot tried to join since its start. */
  readonly #tried = new Set<string>();

  constructor(options: InvitationsOptions) {
    this.#options = options;
  }

  take(invites: Invite[]): void {
    const { isAllowed, log } = this.#options;
    for (const invite of invites) {
      const { room_id, user_id } = invite;
      if (!isAllowed(user_id)) log.info({ room_id, user_id }, "an invite of somebody who is not allowed was left open");
      else if (!this.#joining.has(room_id))
        this.#joining.set(
          room_id,
          this.#join(invite).finally(() => this.#joining.delete(room_id)),
        );
    }
  }

  /** Follows upgrades by allowed people. A room that the bot may not join yet is joined when it is invited, or by a later start. */
  followUpgrades(): void {
    const { isAllowed, state } = this.#options;
    for (const { room_id, replacement, user_id } of state.room_upgrades.open()) {
      if (!isAllowed(user_id) || this.#joining.has(replacement) || this.#tried.has(replacement)) continue;
      this.#tried.add(replacement);
      const via = [user_id, replacement].flatMap((id) => /^[^:]+:(.+)$/.exec(id)?.[1] ?? []);
      const invite = { room_id: replacement, user_id, is_encrypted: state.encrypted_rooms.has(room_id) };
      this.#joining.set(
        replacement,
        this.#join(invite, via).finally(() => this.#joining.delete(replacement)),
      );
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#joining.values());
  }

  async #join({ room_id, user_id, is_encrypted }: Invite, via: string[] = []): Promise<void> {
    const { homeserver, state, sender, encryption, log, signal } = this.#options;
    const backoff = new Backoff(200, 10_000);
    while (!signal.aborted)
      try {
        // So that what is said right after the join is encrypted for the bot too.
        if (is_encrypted) await encryption?.announce();
        await homeserver.join(room_id, via);
        // A welcome must not be the one message that everybody can read.
        const isEncrypted = is_encrypted || (await homeserver.isEncrypted(room_id));
        const isRefused = isEncrypted && encryption === null;
        const { welcome, encrypted } = catalogue(state.people.settings(user_id).language);
        state.transaction(() => {
          // The sync may have refused it first.
          if (isRefused && !state.encrypted_rooms.refuse(room_id)) return;
          if (isEncrypted && !isRefused) state.encrypted_rooms.add(room_id);
          // In a replacement room everybody knows the bot already.
          if (state.room_upgrades.joined(room_id) && !isRefused) return;
          const text = isRefused ? encrypted : welcome;
          for (const content of splitContent(text, { is_notice: true })) state.outbox.add(room_id, content);
        });
        return sender.wake();
      } catch (error) {
        const failure = failureOf(error);
        if (failure.kind === "refused") return log.warn({ room_id, failure }, "a room could not be joined");
        if (failure.kind === "limited") await sleep(failure.retry_after_ms, signal);
        else await backoff.wait(signal);
      }
  }
}
