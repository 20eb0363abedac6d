import type { CheckOptions } from "../actions/action-definition.ts";
import { ActionQueue } from "../actions/action-queue.ts";
import { Dispatcher } from "../actions/dispatcher.ts";
import { prepareFrameActions } from "../actions/frame-actions.ts";
import { GuidanceLimit } from "../actions/guidance-limit.ts";
import { newId, now } from "../domain/ids.ts";
import { Events } from "../events/events.ts";
import type { Catalog } from "../monikers/catalog.ts";
import { SessionRegistry } from "../sessions/registry.ts";
import type { RunnerDependencies, RunnerObserver } from "../sessions/runner-dependencies.ts";
import { StartHold } from "../sessions/start-hold.ts";
import { StepSlots } from "../sessions/step-slots.ts";
import { WakeTimer } from "../sessions/wake-timer.ts";
import type { SessionRelease, Store } from "../store/store.ts";
import type { ToolFactory } from "../tools/tool.ts";
import { requestTracer } from "../tracing/request-spans.ts";
import type { Tracer } from "../tracing/tracer.ts";
import { newToolRegistry } from "./tools.ts";

export type RuntimeOptions = {
  store: Store;
  /** Told of what happens, for figures and logs. */
  observer?: RunnerObserver;
  /** Told when a step begins; what is returned is called at its end. */
  watch?: RunnerDependencies["watch"];
  catalog: Catalog;
  /** The folder that agents' files are in. */
  workspace: string;
  /** The tools of each step; by default those that are always there. */
  tools?: ToolFactory;
  /** The language model of sessions with such options; without one their monikers work offline. */
  llm?: RunnerDependencies["llm"];
  /** Which options sessions cannot have here. */
  checkOptions?: CheckOptions;
  /** Whether steps' rows keep what models and tools were asked and answered. True by default. */
  keep_calls?: boolean;
  /** What bounds the guidance that no step used yet. */
  limit?: GuidanceLimit;
  /** Steps that may run at once. 500 by default. */
  max_running_steps?: number;
  /** Whether sessions that are there already run no step until they are released. False by default. */
  start_held?: boolean;
  /** Makes spans of turns, steps, calls and requests; without it nothing is traced. */
  tracer?: Tracer | undefined;
  /** Milliseconds that a destroyed session's step may take to finish. 5,000 by default. */
  destroy_grace_ms?: number;
  /** Milliseconds that running steps may take to finish when the runtime stops. 10,000 by default. */
  shutdown_grace_ms?: number;
};

/** The parts that make agents live, put together: requests in through the queue, news out through events. */
export class Runtime {
  readonly queue: ActionQueue;
  readonly events: Events;
  /** How this worker is doing. */
  readonly describe: () => { worker_id: string; pid: number; started_at: string } & StepSlots["load"] & {
      /** Whether sessions are held since the start. */
      holds_sessions: boolean;
    };
  readonly #hold: StartHold;
  readonly #registry: SessionRegistry;
  readonly #dispatcher: Dispatcher;
  readonly #wakeTimer: WakeTimer;
  readonly #shutdown_grace_ms: number;
  #stopping: Promise<void> | undefined;

  constructor({ store, catalog, workspace, limit = new GuidanceLimit(store), ...options }: RuntimeOptions) {
    const worker = newId();
    const slots = new StepSlots(options.max_running_steps ?? 500);
    const started_at = now();
    const hold = new StartHold(options.start_held ?? false, started_at);
    this.#hold = hold;
    this.describe = () => ({
      worker_id: worker,
      pid: process.pid,
      started_at,
      ...slots.load,
      holds_sessions: hold.isHolding,
    });
    this.events = new Events(store);
    this.#shutdown_grace_ms = options.shutdown_grace_ms ?? 10_000;
    this.#registry = new SessionRegistry(worker, catalog, {
      store,
      slots,
      probation: new StepSlots(1),
      llm: options.llm ?? (() => null),
      tools: options.tools ?? newToolRegistry({ store, catalog, limit, workspace }).forStep,
      onDelta: ({ session, ...delta }) => this.events.publishDelta(session, delta),
      watch: options.watch ?? (() => () => {}),
      keep_calls: options.keep_calls ?? true,
      observer: options.observer ?? { stepCommitted() {}, committed() {}, retried() {} },
      limit,
      hold,
      prepareActions: (requests, sender) => prepareFrameActions(this.queue, requests, sender),
      destroy_grace_ms: options.destroy_grace_ms ?? 5000,
      tracer: options.tracer,
    });
    this.#dispatcher = new Dispatcher(store, this.#registry, worker);
    this.#wakeTimer = new WakeTimer(store, this.#registry);
    this.queue = new ActionQueue(store, catalog, {
      applyAtOnce: (action) => this.#dispatcher.applyAtOnce(action),
      limit,
      traceRequest: options.tracer && requestTracer(options.tracer),
      ...(options.checkOptions && { checkOptions: options.checkOptions }),
    });
  }

  /** Sessions that were alive go on; then actions are taken. Answers how many sessions came back. */
  async start(): Promise<number> {
    const count = await this.#registry.rehydrate();
    this.#dispatcher.start();
    this.#wakeTimer.start();
    return count;
  }

  /** Lets sessions go on that are held since the start. Answers how many go on in this process. */
  release(release: SessionRelease): Promise<number> {
    return this.#registry.goOnReleased(this.#hold.release(release));
  }

  /** Claims nothing more, lets running steps finish, gives up every session. The store stays open. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    // First of all: a step that cannot be written would keep the actions of its session waiting.
    this.#registry.startNoMore();
    await Promise.all([this.#dispatcher.stop(), this.#wakeTimer.stop()]);
    await this.#registry.stop(this.#shutdown_grace_ms);
  }
}
