import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { ActionQueue } from "../../actions/action-queue.ts";
import type { Conversations } from "../../actions/conversations.ts";
import type { RerunOutcome, RerunRequest } from "../../domain/rerun.ts";
import type { Events } from "../../events/events.ts";
import type { Catalog, ReloadReport } from "../../monikers/catalog.ts";
import type { SessionRelease, Store } from "../../store/store.ts";
import type { ToolDirectory } from "../../tools/tool.ts";
import type { Webhooks } from "../../webhooks/webhooks.ts";
import type { Metrics } from "./metrics.ts";

type RuntimeState = {
  worker_id: string;
  pid: number;
  started_at: string;
  running_steps: number;
  waiting_steps: number;
  max_running_steps: number;
  holds_sessions: boolean;
};

/** What the routes work with. */
export type ServerContext = {
  store: Store;
  queue: ActionQueue;
  conversations: Conversations;
  events: Events;
  catalog: Catalog;
  tools: ToolDirectory;
  /** Loads changed monikers of this process. */
  reloadMonikers: () => Promise<ReloadReport>;
  /** Runs a recorded step once more, without a trace. */
  rerun: (session_id: string, iteration: number, request: RerunRequest, signal: AbortSignal) => Promise<RerunOutcome>;
  /** Lets sessions go on that are held since the start. Answers how many go on in this process. */
  release: (release: SessionRelease) => Promise<number>;
  webhooks: Webhooks;
  metrics: Metrics;
  models: {
    /** The model of sessions that name none; null where there is none. */
    default_model: string | null;
    /** The day of the newest known price. */
    pricesAsOf: () => Promise<string>;
  };
  /** The one chat that AgentApi serves, which can be started afresh. */
  chat: { reset(): Promise<void> };
  /** Milliseconds after which a client is dropped that has something to read and does not. */
  stall_ms: number;
  /** Those who run agents, as far as this process knows. */
  runtimes: () => RuntimeState[];
};

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;
/** `isTrusted` tells whether a request has the token, on a route that is open to everyone. */
export type Routes = (app: App, context: ServerContext & { isTrusted: (request: FastifyRequest) => boolean }) => void;
