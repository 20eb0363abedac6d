import rateLimit from "@fastify/rate-limit";
import fastify, { type FastifyBaseLogger, type FastifyError, type FastifyRequest, LogController } from "fastify";
import { validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import helmet from "helmet";
import { newId } from "../../domain/ids.ts";
import { withIncoming } from "../../tracing/incoming.ts";
import { type AccessRules, bearer, isFromThisMachine } from "../access.ts";
import type { TokenCheck } from "../token-check.ts";
import { apiReference } from "./api-reference.ts";
import { readBodies } from "./bodies.ts";
import { brokenRequests } from "./broken-requests.ts";
import { consoleFiles } from "./console-files.ts";
import type { App, Routes, ServerContext } from "./context.ts";
import { endConnections } from "./end-connections.ts";
import { type ConnectionLimits, newHttpServer } from "./http-server.ts";
import { describeApi } from "./openapi.ts";
import { Problem } from "./problem.ts";
import { actionRoutes } from "./routes/actions.ts";
import { agentRoutes } from "./routes/agents.ts";
import { archiveRoutes } from "./routes/archives.ts";
import { backupRoutes } from "./routes/backups.ts";
import { controlRoutes } from "./routes/controls.ts";
import { conversationRoutes } from "./routes/conversations.ts";
import { costRoutes } from "./routes/costs.ts";
import { eventRoutes } from "./routes/events.ts";
import { monikerVersionRoutes } from "./routes/moniker-versions.ts";
import { overviewRoutes } from "./routes/overview.ts";
import { rerunRoutes } from "./routes/reruns.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { summaryRoutes } from "./routes/summaries.ts";
import { systemRoutes } from "./routes/system.ts";
import { toolRoutes } from "./routes/tools.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import { toProblem } from "./to-problem.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Needs no token. */
    open?: boolean;
    /** Needs the metrics' own token. */
    metrics?: boolean;
    /** Also accepts the token as `?token=`, for clients that cannot send headers. */
    token_in_query?: boolean;
  }
}

const ROUTES: Routes[] = [
  agentRoutes,
  controlRoutes,
  sessionRoutes,
  rerunRoutes,
  summaryRoutes,
  actionRoutes,
  conversationRoutes,
  eventRoutes,
  systemRoutes,
  toolRoutes,
  monikerVersionRoutes,
  overviewRoutes,
  costRoutes,
  webhookRoutes,
  backupRoutes,
  archiveRoutes,
];
const LARGEST_BODY = 1024 * 1024;
/** Fits an id of 200 characters of any script, percent-encoded. */
const LONGEST_PARAMETER = 4096;

export type ServerOptions = AccessRules & {
  log: FastifyBaseLogger;
  limits: ConnectionLimits;
  token_check: TokenCheck;
  /** The most requests per client and minute. */
  rate_limit: number;
  /** The folder with the web console's built files. */
  console_folder: string;
  /** Whether the trace of an incoming request is continued. */
  is_traced: boolean;
  /** Routes of other surfaces, served beside the API. */
  more_routes: readonly Routes[];
};

export async function buildServer(context: ServerContext, options: ServerOptions): Promise<App> {
  const app: App = fastify({
    ...brokenRequests,
    serverFactory: (handler) => newHttpServer(handler, options.limits),
    loggerInstance: options.log,
    bodyLimit: LARGEST_BODY,
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    return503OnClosing: false,
    genReqId: newId,
    logController: new LogController({ disableRequestLogging: true }),
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  // Responses are our own rows: described for the documentation, not checked again.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error);
    if (problem.status >= 500) request.log.error({ err: error }, "a request failed");
    if (problem.retry_after_s !== undefined) reply.header("retry-after", problem.retry_after_s);
    if (problem.status === 401) reply.header("www-authenticate", "Bearer");
    return reply.code(problem.status).type("application/problem+json").send(JSON.stringify(problem));
  });
  app.setNotFoundHandler(() => {
    throw new Problem(404, "there is nothing at this path; /docs lists the API");
  });
  readBodies(app);
  endConnections(app);
  app.addHook("onRequest", async (request) => admit(request, options));
  // Built once: Fastify's own plugin assembles the policy for every request.
  const setSafeHeaders = helmet({
    contentSecurityPolicy: { directives: CONTENT_POLICY },
    strictTransportSecurity: false,
  });
  app.addHook("onRequest", (request, reply, done) => setSafeHeaders(request.raw, reply.raw, () => done()));
  // Without a token every client is on this machine.
  if (options.token !== undefined)
    await app.register(rateLimit, {
      max: options.rate_limit,
      timeWindow: 60_000,
      // A client that has reset its connection no longer has an address.
      keyGenerator: ({ socket }) => socket.remoteAddress ?? "",
      // Health checks are never limited.
      allowList: ({ routeOptions }: FastifyRequest) => routeOptions.url === "/health",
      errorResponseBuilder: () => new Problem(429, "too many requests; try again in a minute"),
    });
  await describeApi(app);
  apiReference(app);
  consoleFiles(app, options.console_folder);
  // After the body was read: its parser does not keep the request's async context.
  if (options.is_traced)
    app.addHook("preHandler", (request, _reply, done) => withIncoming(traceparentOf(request), done));
  const isTrusted = ({ headers, socket }: FastifyRequest): boolean =>
    options.token === undefined ||
    options.token_check.verdict(bearer(headers), options.token, socket.remoteAddress) === "right";
  for (const routes of [...ROUTES, ...options.more_routes]) routes(app, { ...context, isTrusted });
  return app;
}

const CONTENT_POLICY = {
  defaultSrc: ["'self'"],
  connectSrc: ["'self'", "ws:", "wss:"],
  fontSrc: ["'self'", "data:"],
  imgSrc: ["'self'", "data:"],
  styleSrc: ["'self'", "'unsafe-inline'"],
  upgradeInsecureRequests: null,
};

function admit(request: FastifyRequest, { token, metrics_token, token_check }: ServerOptions): void {
  if (token === undefined && !isFromThisMachine(request.headers))
    throw new Problem(
      403,
      "without EVERSTEP_TOKEN the server only answers requests from this machine, at its loopback address",
    );
  const { open, metrics, token_in_query } = request.routeOptions.config;
  const expected = metrics ? metrics_token : token;
  if (open || expected === undefined) return;
  const candidate = bearer(request.headers) ?? (token_in_query ? queryToken(request) : undefined);
  const verdict = token_check.verdict(candidate, expected, request.socket.remoteAddress);
  if (verdict === "too_many") throw new Problem(429, "too many wrong tokens; try again in a minute");
  if (verdict === "wrong") throw new Problem(401, "a token is needed: Authorization: Bearer …");
}

const traceparentOf = ({ headers: { traceparent } }: FastifyRequest): string | undefined =>
  typeof traceparent === "string" ? traceparent : undefined;

function queryToken({ query }: FastifyRequest): string | undefined {
  const { token } = query as { token?: unknown };
  return typeof token === "string" ? token : undefined;
}
