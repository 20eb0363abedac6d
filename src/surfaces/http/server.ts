import { randomBytes } from "node:crypto";
import helmet from "@fastify/helmet";
import rateLimit from "@fastify/rate-limit";
import fastify, { type FastifyBaseLogger, type FastifyError, type FastifyRequest, LogController } from "fastify";
import { validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
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
import { controlRoutes } from "./routes/controls.ts";
import { conversationRoutes } from "./routes/conversations.ts";
import { costRoutes } from "./routes/costs.ts";
import { eventRoutes } from "./routes/events.ts";
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
    /** Answered without a token. */
    open?: boolean;
    /** Asks for the metrics' own token. */
    metrics?: boolean;
    /** Takes the token as `?token=` as well, for clients that cannot send headers. */
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
  overviewRoutes,
  costRoutes,
  webhookRoutes,
];
const LARGEST_BODY = 1024 * 1024;
/** An id of 200 characters of any script, percent-encoded. */
const LONGEST_PARAMETER = 4096;

export type ServerOptions = AccessRules & {
  log: FastifyBaseLogger;
  limits: ConnectionLimits;
  token_check: TokenCheck;
  /** Requests that one client may make in a minute. */
  rate_limit: number;
  /** Where the web console's built files are. */
  console_folder: string;
  /** Whether the trace that a request came with is gone on with. */
  is_traced: boolean;
  /** Those of other surfaces that are served beside the API. */
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
    genReqId: () => randomBytes(8).toString("hex"),
    logController: new LogController({ disableRequestLogging: true }),
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  // Answers are our own rows: they are described for the documentation, not checked again.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toProblem(error);
    if (problem.status >= 500) request.log.error({ err: error }, "a request failed");
    if (problem.retry_after_s !== undefined) reply.header("retry-after", problem.retry_after_s);
    if (problem.status === 401) reply.header("www-authenticate", "Bearer");
    return reply.code(problem.status).type("application/problem+json").send(JSON.stringify(problem));
  });
  app.setNotFoundHandler(() => {
    throw new Problem(404, "there is nothing at this address; /docs lists what there is");
  });
  readBodies(app);
  endConnections(app);
  app.addHook("onRequest", async (request) => admit(request, options));
  await app.register(helmet, { contentSecurityPolicy: { directives: CONTENT_POLICY }, strictTransportSecurity: false });
  await app.register(rateLimit, {
    max: options.rate_limit,
    timeWindow: 60_000,
    // A client that reset its connection meanwhile has no address any more.
    keyGenerator: ({ socket }) => socket.remoteAddress ?? "",
    // Without a token every client is on this machine. Who watches over the server is never turned away.
    allowList: ({ routeOptions }: FastifyRequest) => options.token === undefined || routeOptions.url === "/health",
    errorResponseBuilder: () => new Problem(429, "too many requests; try again in a minute"),
  });
  await describeApi(app);
  apiReference(app);
  consoleFiles(app, options.console_folder);
  // After the body was read: what reads it does not keep to a request's context.
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
    throw new Problem(403, "without EVERSTEP_TOKEN the server answers this machine only, under its loopback name");
  const { open, metrics, token_in_query } = request.routeOptions.config;
  const expected = metrics ? metrics_token : token;
  if (open || expected === undefined) return;
  const given = bearer(request.headers) ?? (token_in_query ? queryToken(request) : undefined);
  const verdict = token_check.verdict(given, expected, request.socket.remoteAddress);
  if (verdict === "too_many") throw new Problem(429, "too many wrong tokens; try again in a minute");
  if (verdict === "wrong") throw new Problem(401, "a token is needed: Authorization: Bearer …");
}

const traceparentOf = ({ headers: { traceparent } }: FastifyRequest): string | undefined =>
  typeof traceparent === "string" ? traceparent : undefined;

function queryToken({ query }: FastifyRequest): string | undefined {
  const { token } = query as { token?: unknown };
  return typeof token === "string" ? token : undefined;
}
