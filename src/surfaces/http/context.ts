import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { ActionQueue } from "../../actions/action-queue.ts";
import type { Conversations } from "../../actions/conversations.ts";
import type { Archives } from "../../archive/archives.ts";
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
  archives: Pick<Archives, "job" | "list" | "start">;
  queue: ActionQueue;
  conversations: Conversations;
  events: Events;
  catalog: Catalog;
  tools: ToolDirectory;
  /** Reloads changed monikers of this process. */
  reloadMonikers: () => Promise<ReloadReport>;
  /** Reruns a recorded step without side effects. */
  rerun: (session_id: string, iteration: number, request: RerunRequest, signal: AbortSignal) => Promise<RerunOutcome>;
  /** Releases sessions that are held since the start. Returns how many continue in this process. */
  release: (release: SessionRelease) => Promise<number>;
  webhooks: Webhooks;
  metrics: Metrics;
  models: {
    /** The default model; null if there is none. */
    default_model: string | null;
    /** The date of the newest known price. */
    pricesAsOf: () => Promise<string>;
  };
  /** AgentApi's single chat, which can be reset. */
  chat: { reset(): Promise<void> };
  /** A client that has unread data and reads nothing for this many milliseconds is dropped. */
  stall_ms: number;
  /** The runtimes of this process. */
  runtimes: () => RuntimeState[];
};

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;
/** `isTrusted` says whether a request to a public route carries the token. */
export type Routes = (app: App, context: ServerContext & { isTrusted: (request: FastifyRequest) => boolean }) => void;
