import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { EverstepError } from "../domain/errors.ts";
import { loadCatalog } from "../monikers/catalog.ts";
import type { Llm } from "../monikers/llm/llm.ts";
import { readModel } from "../monikers/llm/model.ts";
import { Conversations } from "../queue/conversations.ts";
import { openStore } from "../store/open-store.ts";
import { isLoopback } from "../surfaces/access.ts";
import { AgentSocketServer } from "../surfaces/agent-ws/agent-socket.ts";
import { DefaultChat } from "../surfaces/agent-ws/default-chat.ts";
import { Metrics } from "../surfaces/http/metrics.ts";
import { buildServer } from "../surfaces/http/server.ts";
import { SocketServer } from "../surfaces/socket/socket-server.ts";
import { type Config, readConfig } from "./config.ts";
import { Runtime } from "./runtime.ts";

const CONSOLE = fileURLToPath(new URL("../../console/dist", import.meta.url));

/** The whole product in one process, until SIGINT or SIGTERM; then everything is left on disk. */
export async function serve(): Promise<void> {
  const config = readConfig(process.env);
  requireTokenOffLoopback(config);
  const stopped = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await using resources = new AsyncDisposableStack();
  const log = pino({ level: config.EVERSTEP_LOG_LEVEL }, pino.destination(2));
  const catalog = await loadCatalog(config.EVERSTEP_MONIKERS);
  const store = await openStore(config.EVERSTEP_STORE);
  resources.defer(() => store.close());
  const metrics = new Metrics(store);
  const runtime = new Runtime({
    store,
    catalog,
    workspace: config.EVERSTEP_WORKSPACE,
    llm: await openModel(config),
    max_running_steps: config.EVERSTEP_MAX_RUNNING_STEPS,
    observer: {
      stepCommitted: (step) => metrics.stepCommitted(step),
      committed: (ms) => metrics.committed(ms),
      retried(session, error) {
        metrics.retried();
        // The message only: what stands behind it may quote a prompt.
        const reason = error instanceof Error ? error.message : String(error);
        log.warn({ session_id: session.session_id, reason }, "a step failed and is tried again");
      },
    },
  });
  const conversations = new Conversations(store);
  const { queue, events } = runtime;
  const chat = new DefaultChat(store, queue, events);
  const app = await buildServer(
    { store, queue, conversations, events, catalog, metrics, chat, workers: () => [runtime.describe()] },
    {
      token: config.EVERSTEP_TOKEN,
      metrics_token: config.EVERSTEP_METRICS_TOKEN,
      rate_limit: config.EVERSTEP_RATE_LIMIT,
      console_folder: CONSOLE,
      log,
    },
  );
  const revived = await runtime.start();
  resources.defer(() => runtime.stop());
  const sockets = new SocketServer(app.server, events, config.EVERSTEP_TOKEN, log);
  const agentSockets = new AgentSocketServer(app.server, chat, config.EVERSTEP_TOKEN, log);
  // Undone in reverse: nothing more is taken in, running steps finish, the store is left in order.
  resources.defer(() => app.close());
  resources.defer(() => sockets.stop());
  resources.defer(() => agentSockets.stop());
  const address = await app
    .listen({ host: config.EVERSTEP_HOST, port: config.EVERSTEP_PORT })
    .catch((error: unknown) => {
      throw new EverstepError(
        "address_unavailable",
        `${config.EVERSTEP_HOST}:${config.EVERSTEP_PORT} cannot be listened on (${(error as Error).message})`,
        "stop what uses it, or set EVERSTEP_PORT",
        error,
      );
    });
  greet(address, config, revived);
  await stopped;
  log.info("stopping");
}

/** BAML's native part is large: it is loaded only where a model is configured. */
async function openModel(config: Config): Promise<Llm | null> {
  const model = readModel(config);
  if (!model) return null;
  const [{ BamlEngine }, { Llm: Model }] = await Promise.all([
    import("../monikers/llm/baml-engine.ts"),
    import("../monikers/llm/llm.ts"),
  ]);
  return new Model(new BamlEngine(model));
}

function requireTokenOffLoopback({ EVERSTEP_HOST, EVERSTEP_TOKEN }: Config): void {
  if (EVERSTEP_TOKEN !== undefined || isLoopback(EVERSTEP_HOST)) return;
  throw new EverstepError(
    "token_required",
    `EVERSTEP_HOST=${EVERSTEP_HOST} can be reached from other machines and no token is set`,
    "set EVERSTEP_TOKEN, or use 127.0.0.1",
  );
}

function greet(address: string, { EVERSTEP_STORE }: Config, revived: number): void {
  const store = EVERSTEP_STORE.replace(/\/\/.*@/, "//…@");
  console.log(`Everstep is up at ${address} (store ${store}${revived > 0 ? `, ${revived} sessions go on` : ""})

Try:  curl -s ${address}/api/agents -H 'content-type: application/json' -d '{"agent_id":"joker","moniker":"joke","params":{"subject":"tea"}}'
      curl -s '${address}/api/agent-steps?agent_id=joker'

The console is at ${address}/, the API is described at ${address}/docs. Ctrl-C stops it; everything goes on at the next start.`);
}
