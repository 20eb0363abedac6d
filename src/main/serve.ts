import { flushCompileCache } from "node:module";
import { fileURLToPath } from "node:url";
import { type Logger, pino } from "pino";
import { ActionQueue } from "../actions/action-queue.ts";
import { Conversations } from "../actions/conversations.ts";
import { GuidanceLimit } from "../actions/guidance-limit.ts";
import { Archives } from "../archive/archives.ts";
import { locationOf } from "../archive/location.ts";
import { durationOf } from "../domain/duration.ts";
import { EverstepError } from "../domain/errors.ts";
import { redactUrls } from "../domain/redact.ts";
import { Events } from "../events/events.ts";
import { BUILT_IN, MonikerLoader } from "../monikers/catalog.ts";
import { ownFileOf } from "../monikers/import-own.ts";
import { RemoteMonikers } from "../monikers/remote/remote-monikers.ts";
import { Rerunner } from "../sessions/rerun.ts";
import { currentStep, runningSteps } from "../sessions/step-scope.ts";
import { isShared } from "../store/open-store.ts";
import type { Store } from "../store/store.ts";
import { AgentSocketServer } from "../surfaces/agent-ws/agent-socket.ts";
import { DefaultChat } from "../surfaces/agent-ws/default-chat.ts";
import type { ServerContext } from "../surfaces/http/context.ts";
import { listenOnName } from "../surfaces/http/listen-on-name.ts";
import { Metrics } from "../surfaces/http/metrics.ts";
import { buildServer } from "../surfaces/http/server.ts";
import { mcpRoutes } from "../surfaces/mcp/mcp-routes.ts";
import { openAiRoutes } from "../surfaces/openai/openai-routes.ts";
import { SocketServer } from "../surfaces/socket/socket-server.ts";
import { TokenCheck } from "../surfaces/token-check.ts";
import { requestTracer } from "../tracing/request-spans.ts";
import { Deliverer } from "../webhooks/deliverer.ts";
import { DeliveryAddresses } from "../webhooks/delivery-addresses.ts";
import { Webhooks } from "../webhooks/webhooks.ts";
import type { Config } from "./config.ts";
import { greeting } from "./greeting.ts";
import { Models, unknownModel } from "./models.ts";
import { MonikerReloads } from "./moniker-reloads.ts";
import { remoteFinder } from "./remotes.ts";
import { Runtime, type RuntimeOptions } from "./runtime.ts";
import { stopRequested } from "./stop-requested.ts";
import { StrayErrors } from "./stray-errors.ts";
import { UP } from "./supervise.ts";
import { openTools, type Tools } from "./tools.ts";
import { openTracing } from "./tracing.ts";
import { Watchdog } from "./watchdog.ts";

const CONSOLE = fileURLToPath(new URL("../../console/dist", import.meta.url));

/** `serve` is both in one process, the only option on the embedded store. */
export type Role = "serve" | "worker" | "server";

/** Runs until SIGINT, SIGTERM or a fatal error; everything is then in the store. */
export async function serve(role: Role, config: Config, options: ServeOptions): Promise<void> {
  await serveUntilStopped(role, config, options);
  // Done: handles kept open elsewhere must not keep the process alive.
  process.exit();
}

/** Notices of the store, such as upgrades and problems; they go to the log once there is one. */
export type StoreNotices = { tell: (text: string) => void };

type ServeOptions = {
  opening: Promise<Store>;
  notices: StoreNotices;
  /** Whether changes in the monikers' folder trigger a reload. */
  watch: boolean;
};

/** Registers a cleanup for when the process stops; the last one runs first. */
type AtStop = (what: string, stop: () => unknown) => void;

async function serveUntilStopped(role: Role, config: Config, { opening, notices, watch }: ServeOptions): Promise<void> {
  const log = pino({ level: config.EVERSTEP_LOG_LEVEL, hooks: { streamWrite: redactUrls } }, pino.destination(2));
  notices.tell = (text) => log.warn(text);
  const strays = new StrayErrors(log, runningSteps);
  strays.onStray((error) => isOfStep(error, log) || isOfMoniker(error, log));
  const stopped = stopRequested(strays);
  await using resources = new AsyncDisposableStack();
  let awaited = "the start";
  const atStop: AtStop = (what, stop) =>
    resources.defer(async () => {
      awaited = what;
      await stop();
    });
  void stopped.then((limit_ms) => leaveWithin(limit_ms, log, () => awaited));
  // Waiting for a database may take forever; a folder opens soon and must then be closed properly.
  const store = await (isShared(config.EVERSTEP_STORE) ? Promise.race([opening, stopped.then(() => null)]) : opening);
  if (!store) return;
  atStop("the store", () => store.close());
  const archives = openArchives(config, { store, log }, atStop);
  const loader = await openMonikers(config, log, atStop);
  const { catalog } = loader;
  const reloads = reloadable(loader, { folder: config.EVERSTEP_MONIKERS, watch, log }, atStop);
  const metrics = new Metrics(store);
  const limit = newGuidanceLimit(config, store);
  const tracer = await openTracing(config, { log, metrics }, atStop);
  const watchdog = newWatchdog(config, atStop);
  const models = new Models(config);
  const parts = { store, catalog, limit, metrics, log, watchdog, models, tracer };
  if (role !== "server") await models.for({}); // Reports a missing model now, not in every step.
  const tools = await openTools(config, { ...parts, observer: metrics.toolCalled }, { atStop, reloads });
  const runtime = role === "server" ? null : newRuntime(config, { ...parts, tools });
  atStop("the work in progress", () => runtime?.stop());
  const { queue, events } = runtime ?? { queue: newQueue(parts), events: new Events(store) };
  const { webhooks, deliverer } = newWebhooks(config, parts);
  atStop("webhook deliveries", () => deliverer.stop());
  const { rerun } = newRerunner({ ...parts, tools });
  const runtimes = () => (runtime ? [runtime.describe()] : []);
  const release = releasing(store, runtime);
  const served = {
    ...parts,
    archives,
    runtimes,
    queue,
    events,
    rerun,
    release,
    webhooks,
    reloadMonikers: reloads.reload,
  };
  const address = role === "worker" ? null : await listen(config, { ...served, tools: tools.registry }, atStop);
  process.send?.(UP);
  if (runtime) for (const service of [tools, deliverer]) service.start();
  // Only now: a step that blocks or crashes the process must not keep it from being reachable or restarted.
  const revived = await Promise.race([runtime?.start() ?? 0, stopped.then(() => 0)]);
  console.log(greeting(address, config, { revived, monikers: catalog.size - BUILT_IN.length, ...tools.summary }));
  // Now, not at the end, which may come at any moment.
  flushCompileCache();
  await stopped;
  store.prepareToStop?.();
}

const newGuidanceLimit = (config: Config, store: Store): GuidanceLimit =>
  new GuidanceLimit(store, {
    count: config.EVERSTEP_MAX_PENDING_GUIDANCE,
    bytes: config.EVERSTEP_MAX_PENDING_GUIDANCE_BYTES,
  });

/** Every process reads volumes; one that runs agents archives by itself where it is told to. */
function openArchives(config: Config, { store, log }: { store: Store; log: Logger }, atStop: AtStop): Archives {
  const folder = /^lancedb:(.+)$/.exec(config.EVERSTEP_STORE)?.[1] ?? null;
  const files = async () => new (await import("../archive/volume-files.ts")).VolumeFiles(folder);
  const archives = new Archives(store, files, locationOf(config.EVERSTEP_ARCHIVE, folder));
  const { EVERSTEP_ARCHIVE_AFTER: after } = config;
  if (after !== undefined)
    archives.schedule(durationOf(after, "EVERSTEP_ARCHIVE_AFTER"), (why) =>
      log.error(`history was not archived: ${why}`),
    );
  atStop("the archive job", () => archives.stop());
  return archives;
}

/** Releases sessions that are held since the start, here and in every other process. */
function releasing(store: Store, runtime: Runtime | null): ServerContext["release"] {
  store.onRelease?.((release) => void runtime?.release(release).catch(() => {}));
  return async (release) => {
    store.publishRelease?.(release);
    return (await runtime?.release(release)) ?? 0;
  };
}

/** A hanging task must not keep a stopping process alive: everything acknowledged is in the store. */
function leaveWithin(limit_ms: number, log: Logger, awaited: () => string): void {
  log.info("stopping");
  setTimeout(() => {
    log.error(`${awaited()} did not end in time; leaving it`);
    process.exit(1);
  }, limit_ms).unref();
}

/** An error that a step left behind fails that step; if the step is over, it is only logged. */
function isOfStep(error: unknown, log: Logger): boolean {
  const step = currentStep();
  if (!step) return false;
  if (!step.fail(error)) {
    const { session_id, iteration } = step;
    log.error({ err: error, session_id, iteration }, "a finished step caused an error that it did not catch");
  }
  return true;
}

/** An error outside any step that comes from a moniker's file, for example from a timer it set while loading. */
function isOfMoniker(error: unknown, log: Logger): boolean {
  const file = ownFileOf(error);
  if (file === null) return false;
  log.error({ err: error, file, running_steps: runningSteps() }, "a moniker's file caused an error outside any step");
  return true;
}

async function openMonikers(config: Config, log: Logger, atStop: AtStop): Promise<MonikerLoader> {
  const remoteMonikers = new RemoteMonikers(remoteFinder(config, log));
  atStop("the workers of monikers", () => remoteMonikers.stop());
  return MonikerLoader.open(config.EVERSTEP_MONIKERS, remoteMonikers);
}

type ReloadOptions = { folder: string | undefined; watch: boolean; log: Logger };

function reloadable(loader: MonikerLoader, { folder, watch, log }: ReloadOptions, atStop: AtStop): MonikerReloads {
  const reloads = new MonikerReloads(loader, log);
  atStop("the signal to reload", reloads.onHangUp());
  if (!watch) return reloads;
  if (folder === undefined)
    throw new EverstepError(
      "config_invalid",
      "--watch has nothing to watch",
      "create a folder ./monikers, or set EVERSTEP_MONIKERS",
    );
  atStop("the watch over the monikers", () => reloads.unwatch());
  reloads.watch(folder);
  return reloads;
}

function newWatchdog({ EVERSTEP_BLOCKED_LIMIT_S, EVERSTEP_LOG_LEVEL }: Config, atStop: AtStop): Watchdog {
  const is_silent = EVERSTEP_LOG_LEVEL === "silent";
  const watchdog = new Watchdog({ limit_ms: EVERSTEP_BLOCKED_LIMIT_S * 1000, is_silent });
  atStop("the watchdog", () => watchdog.stop());
  return watchdog;
}

type RuntimeParts = Required<Pick<RuntimeOptions, "store" | "catalog" | "limit">> & {
  tracer: RuntimeOptions["tracer"];
  metrics: Metrics;
  log: Logger;
  models: Models;
  watchdog: Watchdog;
  tools: Pick<Tools, "registry">;
};

function newRuntime(config: Config, { metrics, log, models, watchdog, tools, ...parts }: RuntimeParts): Runtime {
  return new Runtime({
    ...parts,
    tools: tools.registry.forStep,
    workspace: config.EVERSTEP_WORKSPACE,
    llm: (options) => models.for(options),
    checkOptions: (options) => models.problemOf(options),
    watch: watchdog.watch,
    keep_calls: config.EVERSTEP_KEEP_CALLS === "on",
    max_running_steps: config.EVERSTEP_MAX_RUNNING_STEPS,
    start_held: config.EVERSTEP_START_HELD === "1",
    observer: {
      stepCommitted: (step) => metrics.stepCommitted(step),
      committed: (ms) => metrics.committed(ms),
      retried(session, error) {
        metrics.retried();
        // Only the message: the cause may quote a prompt.
        const reason = error instanceof Error ? error.message : String(error);
        log.warn({ session_id: session.session_id, reason }, "a step failed and will be retried");
      },
    },
  });
}

type WebhookParts = { store: Store; metrics: Metrics; log: Logger };

function newWebhooks(config: Config, { store, metrics, log }: WebhookParts) {
  const addresses = new DeliveryAddresses(config.EVERSTEP_WEBHOOK_ALLOW);
  const deliverer = new Deliverer(store.webhooks, {
    addresses,
    onAttempt: metrics.deliveryAttempted,
    onError: (error) => log.warn({ err: error }, "webhook deliveries wait for the store"),
  });
  return { webhooks: new Webhooks(store.webhooks, addresses), deliverer };
}

type RerunParts = Pick<RuntimeParts, "store" | "catalog" | "watchdog" | "tools"> & { models: Models };

function newRerunner({ store, catalog, watchdog, tools, models }: RerunParts): Rerunner {
  return new Rerunner({
    store,
    catalog,
    watch: watchdog.watch,
    llm: (options) => models.for(options),
    tools: tools.registry.forStep,
  });
}

/** For a process that runs no steps. */
const newQueue = ({ store, catalog, limit, tracer }: Pick<RuntimeParts, "store" | "catalog" | "limit" | "tracer">) =>
  new ActionQueue(store, catalog, {
    limit,
    checkOptions: unknownModel,
    traceRequest: tracer && requestTracer(tracer),
  });

type ServerParts = Omit<ServerContext, "chat" | "conversations" | "stall_ms"> & {
  log: Logger;
  limit: GuidanceLimit;
  tracer: RuntimeOptions["tracer"];
};

/** Starts all listeners, on one port. They stop before the runtime does. */
async function listen(config: Config, { log, limit, tracer, ...parts }: ServerParts, atStop: AtStop): Promise<string> {
  const { store, queue, events } = parts;
  const chat = new DefaultChat(store, queue, events);
  atStop("the chat", () => chat.stop());
  const token_check = new TokenCheck(config.EVERSTEP_WRONG_TOKENS);
  const stall_ms = config.EVERSTEP_SLOW_READER_S * 1000;
  const app = await buildServer(
    { ...parts, conversations: new Conversations(store, queue, limit), chat, stall_ms },
    {
      token: config.EVERSTEP_TOKEN,
      metrics_token: config.EVERSTEP_METRICS_TOKEN,
      rate_limit: config.EVERSTEP_RATE_LIMIT,
      token_check,
      limits: {
        max_connections: config.EVERSTEP_MAX_CONNECTIONS,
        max_connections_per_address: config.EVERSTEP_MAX_CONNECTIONS_PER_ADDRESS,
      },
      console_folder: CONSOLE,
      more_routes: [mcpRoutes, openAiRoutes],
      is_traced: tracer !== undefined,
      log,
    },
  );
  const options = { token: config.EVERSTEP_TOKEN, token_check, stall_ms };
  const sockets = new SocketServer(app.server, events, options, log);
  const agentSockets = new AgentSocketServer(app.server, chat, options, log);
  // Undone in reverse: nothing more is accepted, running steps finish, the store is closed.
  atStop("the server", () => app.close());
  atStop("sockets", () => sockets.stop());
  atStop("the chat's sockets", () => agentSockets.stop());
  try {
    const address = await app.listen({ host: config.EVERSTEP_HOST, port: config.EVERSTEP_PORT });
    atStop("the other addresses", await listenOnName(app.server, config.EVERSTEP_HOST));
    return address;
  } catch (error) {
    throw new EverstepError(
      "address_unavailable",
      `${config.EVERSTEP_HOST}:${config.EVERSTEP_PORT} cannot be listened on (${(error as Error).message})`,
      "stop what uses it, or set EVERSTEP_PORT",
      error,
    );
  }
}
