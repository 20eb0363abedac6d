import type { Logger } from "pino";
import { redactUrl } from "../../domain/redact.ts";
import type { MatrixConfig } from "./config.ts";
import { Health, isHealthy } from "./health.ts";
import { MatrixBot } from "./matrix-bot.ts";
import { MockPlatform } from "./platform/mock-platform.ts";
import type { PlatformClient } from "./platform/platform-client.ts";
import { RealPlatform } from "./platform/real-platform.ts";
import { Database } from "./state/database.ts";
import { Homeserver } from "./transport/homeserver.ts";

type MatrixProcess = {
  log: Logger;
  /** Resolves when the bot is asked to stop. */
  stopped: Promise<unknown>;
  /** Called once the bot follows its homeserver. */
  onUp: () => void;
};

/** Runs the bot until it is asked to stop. Work in progress continues at the next start. */
export async function runMatrix(config: MatrixConfig, { log, stopped, onUp }: MatrixProcess): Promise<void> {
  using database = Database.open(config.MATRIX_STATE);
  const bot = new MatrixBot({
    config,
    database,
    homeserver: new Homeserver(config.MATRIX_HOMESERVER),
    platform: openPlatform(config),
    health: new Health(config.MATRIX_STATE),
    log,
  });
  try {
    const started = bot.start().then(() => {
      onUp();
      greet(config);
    });
    await Promise.race([started.then(() => stopped), stopped, bot.failed]);
  } finally {
    await bot.stop();
  }
}

/** For a container's health check: whether the bot on this state follows its homeserver. */
export function checkMatrixHealth(): void {
  const folder = process.env["MATRIX_STATE"] || "./matrix-state";
  if (isHealthy(folder)) return console.log("the bot follows its homeserver");
  console.log(`no bot on ${folder} has heard from its homeserver lately`);
  process.exitCode = 1;
}

function openPlatform({
  MATRIX_PLATFORM_BACKEND,
  AGENT_WS_URL,
  AGENT_BASE_URL,
  EVERSTEP_TOKEN,
}: MatrixConfig): PlatformClient {
  return MATRIX_PLATFORM_BACKEND === "mock"
    ? new MockPlatform()
    : new RealPlatform({ ws_url: AGENT_WS_URL, base_url: AGENT_BASE_URL, token: EVERSTEP_TOKEN });
}

function greet({ MATRIX_USER_ID, MATRIX_HOMESERVER, AGENT_WS_URL, MATRIX_PLATFORM_BACKEND }: MatrixConfig): void {
  const agent = MATRIX_PLATFORM_BACKEND === "mock" ? "a mock" : redactUrl(AGENT_WS_URL);
  console.log(
    `${MATRIX_USER_ID} is up at ${redactUrl(MATRIX_HOMESERVER)} and speaks for ${agent}. Invite it to a room and say !help.`,
  );
}
