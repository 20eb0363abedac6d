import type { Logger } from "pino";
import { catalogue } from "./catalogue/catalogue.ts";
import type { MatrixConfig } from "./config.ts";
import { type DecryptedSync, Encryption } from "./encryption/encryption.ts";
import { chatOfThreads } from "./events/chat-of.ts";
import { InboxWorker } from "./events/inbox-worker.ts";
import { registeredHandlers } from "./handlers/register.ts";
import type { Health } from "./health.ts";
import { Invitations } from "./invitations.ts";
import { contentOf, type MessageContent } from "./outgoing/content.ts";
import type { PlatformClient } from "./platform/platform-client.ts";
import { BotState } from "./state/bot-state.ts";
import type { Database } from "./state/database.ts";
import { KeyValues } from "./state/key-values.ts";
import { SyncWriter } from "./sync-writer.ts";
import type { Bot } from "./text/body-text.ts";
import type { Homeserver } from "./transport/homeserver.ts";
import { Login, NO_DEVICE } from "./transport/login.ts";
import { Sender } from "./transport/sender.ts";
import { SyncLoop } from "./transport/sync-loop.ts";
import { ControlJobs } from "./work/control-jobs.ts";
import { QuestionWorker } from "./work/question-worker.ts";
import { WatchList } from "./work/watch-list.ts";

const PRUNE_EVERY_MS = 6 * 3_600_000;

export type MatrixBotParts = {
  config: MatrixConfig;
  database: Database;
  homeserver: Homeserver;
  platform: PlatformClient;
  health: Health;
  log: Logger;
};

/**
 * Puts the bot together: the stream is journalled, events become messages and jobs, jobs become answers, answers are sent.
 * Each step is a transaction, so the bot can be killed anywhere and continue from there.
 */
export class MatrixBot {
  readonly #parts: MatrixBotParts;
  readonly #stopping = new AbortController();
  readonly #failed = Promise.withResolvers<never>();
  #wakeSender = () => {};
  readonly #stops: (() => Promise<void> | void)[] = [];

  constructor(parts: MatrixBotParts) {
    this.#parts = parts;
    this.#failed.promise.catch(() => {});
  }

  /** Rejects when the bot cannot go on. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Resolves once the stream is followed. */
  async start(): Promise<void> {
    const { config, database, homeserver, platform, log } = this.#parts;
    const { signal } = this.#stopping;
    platform.connect();
    this.#stops.push(() => platform.close());
    const login = new Login(homeserver, new KeyValues(database), config, log);
    const device_id = await login.open(signal);
    signal.throwIfAborted();
    const state = new BotState(database, device_id, config.MATRIX_LANGUAGE);
    state.prune();
    const pruning = setInterval(() => state.prune(), PRUNE_EVERY_MS);
    this.#stops.push(() => clearInterval(pruning));
    const bot: Bot = { user_id: config.MATRIX_USER_ID, display_name: null };
    // Needed only to recognize being addressed by name; it may arrive later.
    homeserver.displayName(bot.user_id).then(
      (name) => {
        bot.display_name = name;
      },
      () => {},
    );
    this.#run(state, bot, login, this.#encryption(state, device_id));
    await this.#parts.health.first;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const stop of this.#stops.splice(0).toReversed()) await stop();
  }

  #encryption(state: BotState, device_id: string): Encryption | null {
    const { config, homeserver, log } = this.#parts;
    if (config.MATRIX_ENCRYPTION === "off") return null;
    if (device_id !== NO_DEVICE)
      return new Encryption({
        state,
        homeserver,
        user_id: config.MATRIX_USER_ID,
        device_id,
        isAllowed: config.MATRIX_ALLOWED_USERS,
        recovery_key: config.MATRIX_RECOVERY_KEY,
        password: config.MATRIX_PASSWORD,
        onOutbox: () => this.#wakeSender(),
        log,
      });
    log.warn("the access token belongs to no device, so encrypted rooms cannot be read; log in with a password");
    return null;
  }

  get #undeliverable(): MessageContent {
    return contentOf(catalogue(this.#parts.config.MATRIX_LANGUAGE).undeliverable, { is_notice: true });
  }

  #run(state: BotState, bot: Bot, login: Login, encryption: Encryption | null): void {
    const { config, homeserver, platform, health, log } = this.#parts;
    const { signal } = this.#stopping;
    const isAllowed = config.MATRIX_ALLOWED_USERS;
    const sender = new Sender({ homeserver, state, encryption, log, undeliverable: this.#undeliverable });
    this.#wakeSender = () => sender.wake();
    const context = { state, platform, homeserver, sender, user_id: bot.user_id, log };
    const watches = new WatchList(context);
    const questionWorker = new QuestionWorker(context, () => jobs.wake());
    const jobs = new ControlJobs(context, questionWorker, watches);
    const inbox = new InboxWorker({
      state,
      dispatcher: registeredHandlers({ unknown_commands: config.MATRIX_UNKNOWN_COMMANDS }),
      bot,
      isAllowed,
      chatOf: chatOfThreads(config.MATRIX_THREADS),
      context: { agent_status: () => platform.status, isOperator: config.MATRIX_OPERATORS },
      log,
    });
    const invitations = new Invitations({ homeserver, state, sender, encryption, isAllowed, log, signal });
    const syncWriter = new SyncWriter(state, bot.user_id, { refuses_encryption: encryption === null });
    const wake = (): void => {
      for (const part of [questionWorker, jobs, sender]) part.wake();
      watches.refresh();
      invitations.followUpgrades();
    };
    const loop = new SyncLoop(
      homeserver,
      bot.user_id,
      {
        since: () => syncWriter.since,
        synced: async (sync) => {
          const take = ({ events, has_news, save }: DecryptedSync): void =>
            syncWriter.take({ ...sync, events, has_news }, () => {
              save();
              inbox.work();
            });
          if (encryption) await encryption.receive(sync, take);
          else take({ events: sync.events, has_news: false, save: () => {} });
          health.beat();
          wake();
        },
        invited: (invites) => invitations.take(invites),
        unauthorized: () => login.renew(signal).catch((error: unknown) => this.#failed.reject(error as Error)),
      },
      log,
    );
    this.#stops.push(
      () => encryption?.stop(),
      () => sender.stop(),
      () => watches[Symbol.dispose](),
      () => jobs.stop(),
      () => questionWorker.stop(),
      () => invitations.settled(),
      () => loop.stop(),
    );
    inbox.work();
    for (const part of [sender, questionWorker, loop]) part.start();
    wake();
  }
}
