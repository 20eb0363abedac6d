import { pino } from "pino";
import { InboxWorker } from "../../src/surfaces/matrix/events/inbox-worker.ts";
import { registeredHandlers } from "../../src/surfaces/matrix/handlers/register.ts";
import { plainNotice } from "../../src/surfaces/matrix/outgoing/plain-notice.ts";
import { RealPlatform } from "../../src/surfaces/matrix/platform/real-platform.ts";
import { BotState } from "../../src/surfaces/matrix/state/bot-state.ts";
import { Database } from "../../src/surfaces/matrix/state/database.ts";
import { Homeserver } from "../../src/surfaces/matrix/transport/homeserver.ts";
import { Sender } from "../../src/surfaces/matrix/transport/sender.ts";
import { ControlJobs } from "../../src/surfaces/matrix/work/control-jobs.ts";
import { QuestionWorker } from "../../src/surfaces/matrix/work/question-worker.ts";
import { WatchList } from "../../src/surfaces/matrix/work/watch-list.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";
import { within } from "../within.ts";

type AgentPlace = { ws_url: string; base_url: string };

const NOWHERE = "http://127.0.0.1:1";

/** The bot with a real agent but no homeserver: the test feeds in messages and reads replies from the outbox. */
export class BotParts implements AsyncDisposable {
  readonly state: BotState;
  readonly platform: RealPlatform;
  readonly #inbox: InboxWorker;
  readonly #questions: QuestionWorker;
  readonly #jobs: ControlJobs;
  readonly #closes: (() => unknown)[];
  #events = 0;
  #settled = () => {};

  private constructor(scratch: ScratchFolder, { ws_url, base_url }: AgentPlace) {
    const database = Database.open(scratch.path);
    const state = new BotState(database, "DEVICE", "en");
    const log = pino({ level: "silent" });
    const homeserver = new Homeserver(NOWHERE);
    const sender = new Sender({
      homeserver,
      state,
      log,
      encryption: null,
      undeliverable: plainNotice("undeliverable"),
    });
    const platform = new RealPlatform({ ws_url, base_url, token: undefined });
    const context = { state, platform, homeserver, sender, user_id: "@bot:x", log };
    const watches = new WatchList(context);
    this.state = state;
    this.platform = platform;
    this.#questions = new QuestionWorker(context, () => {
      this.#jobs.wake();
      this.#settled();
    });
    this.#jobs = new ControlJobs(context, this.#questions, watches);
    this.#inbox = new InboxWorker({
      state,
      dispatcher: registeredHandlers({ unknown_commands: "answer" }),
      bot: { user_id: "@bot:x", display_name: null },
      isAllowed: () => true,
      chatOf: () => null,
      context: { agent_status: () => platform.status, isOperator: () => true },
      log,
    });
    // Every job ends here, whether it sends a message or not.
    const { jobs } = state;
    const done = jobs.done.bind(jobs);
    jobs.done = (position) => {
      done(position);
      setImmediate(() => this.#settled());
    };
    this.#closes = [
      () => this.#questions.stop(),
      () => this.#jobs.stop(),
      () => watches[Symbol.dispose](),
      () => platform.close(),
      () => sender.stop(),
      () => database[Symbol.dispose](),
      () => scratch[Symbol.asyncDispose](),
    ];
  }

  static async open(agent: AgentPlace): Promise<BotParts> {
    const parts = new BotParts(await scratchFolder(), agent);
    parts.platform.connect();
    await parts.platform.ready(AbortSignal.timeout(10_000));
    parts.#questions.start();
    return parts;
  }

  /** Passes in a person's message without waiting for its effects. */
  hears(body: string): void {
    this.state.inbox.add({
      event_id: `$${++this.#events}`,
      room_id: "!r:x",
      sender: "@anna:x",
      type: "m.room.message",
      origin_server_ts: Date.now(),
      content: { msgtype: "m.text", body },
    });
    this.#inbox.work();
    this.#questions.wake();
    this.#jobs.wake();
  }

  /** Everything the bot says until the message's effects are complete. */
  async ask(body: string): Promise<string> {
    const before = new Set(this.state.outbox.open().map(({ transaction_id }) => transaction_id));
    this.hears(body);
    await this.settled();
    const rows = this.state.outbox.open().filter(({ transaction_id }) => !before.has(transaction_id));
    return rows.map(({ content }) => content.body).join("\n");
  }

  async settled(): Promise<void> {
    const idle = (async () => {
      while (this.state.jobs.open().length > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#settled = resolve;
        await promise;
      }
    })();
    await within(30_000, idle, () => `still open: ${JSON.stringify(this.state.jobs.open())}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closes) await close();
  }
}
