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
  /** Notified of events, for metrics and logs. */
  observer?: RunnerObserver;
  /** Called when a step begins; the returned function is called at its end. */
  watch?: RunnerDependencies["watch"];
  catalog: Catalog;
  /** The folder of the agents' files. */
  workspace: string;
  /** The tools of each step; default: the built-in ones. */
  tools?: ToolFactory;
  /** The language model for sessions with these options; without one monikers work offline. */
  llm?: RunnerDependencies["llm"];
  /** Which options sessions cannot have here. */
  checkOptions?: CheckOptions;
  /** Whether steps' rows keep the contents of model and tool calls. Default true. */
  keep_calls?: boolean;
  /** Bounds unused guidance. */
  limit?: GuidanceLimit;
  /** The most steps that run at once. Default 500. */
  max_running_steps?: number;
  /** Whether existing sessions run no step until they are released. Default false. */
  start_held?: boolean;
  /** Creates spans of turns, steps, calls and requests; without it tracing is off. */
  tracer?: Tracer | undefined;
  /** How long a destroyed session's step may take to finish, in milliseconds. Default 5,000. */
  destroy_grace_ms?: number;
  /** How long running steps may take to finish when the runtime stops, in milliseconds. Default 10,000. */
  shutdown_grace_ms?: number;
};

/** Wires the parts that run agents: requests enter through the queue, events go out. */
export class Runtime {
  readonly queue: ActionQueue;
  readonly events: Events;
  /** This worker's state. */
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

  /** Resumes live sessions, then handles actions. Returns how many sessions were resumed. */
  async start(): Promise<number> {
    const count = await this.#registry.rehydrate();
    this.#dispatcher.start();
    this.#wakeTimer.start();
    return count;
  }

  /** Releases sessions that are held since the start. Returns how many continue in this process. */
  release(release: SessionRelease): Promise<number> {
    return this.#registry.wakeReleased(this.#hold.release(release));
  }

  /** Claims nothing more, lets running steps finish, releases every session. The store stays open. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    // First: a step that cannot be committed would block the actions of its session.
    this.#registry.stopStarting();
    await Promise.all([this.#dispatcher.stop(), this.#wakeTimer.stop()]);
    await this.#registry.stop(this.#shutdown_grace_ms);
  }
}
