import { existsSync } from "node:fs";
import { z } from "zod";
import { DEFAULT_GUIDANCE_LIMIT } from "../actions/guidance-limit.ts";
import { DURATION } from "../domain/duration.ts";
import { EverstepError } from "../domain/errors.ts";
import { isSigningSecret } from "../signing/request-signer.ts";
import { isLoopback } from "../surfaces/access.ts";
import { SAMPLERS } from "../tracing/settings.ts";
import { isAllowedEntry } from "../webhooks/delivery-addresses.ts";

const secret = z.string().min(1).optional();

const listSchema = z
  .string()
  .default("")
  .transform((list) =>
    list
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== ""),
  );

/** As in OpenTelemetry: anything but `true` is false. */
const flag = z
  .string()
  .optional()
  .transform((value) => value?.toLowerCase() === "true");
const receiver = z.url({ protocol: /^https?$/, message: "must be an http:// or https:// address" }).optional();

const configSchema = z.object({
  EVERSTEP_STORE: z.string().min(1).default("lancedb:./data"),
  EVERSTEP_ARCHIVE: z.string().min(1).optional(),
  EVERSTEP_ARCHIVE_AFTER: z.string().regex(DURATION, "must be hours, days or weeks: 12h, 30d, 8w").optional(),
  EVERSTEP_POSTGRES_POOL: z.coerce.number().int().min(1).max(100).default(4),
  EVERSTEP_HOST: z.string().min(1).default("127.0.0.1"),
  EVERSTEP_PORT: z.coerce.number().int().min(0).max(65_535).default(4180),
  EVERSTEP_TOKEN: secret,
  EVERSTEP_METRICS_TOKEN: secret,
  EVERSTEP_WORKSPACE: z.string().min(1).default("./workspace"),
  EVERSTEP_MONIKERS: z.string().min(1).optional(),
  EVERSTEP_MCP: z.string().min(1).optional(),
  EVERSTEP_TOOLS: z.string().min(1).optional(),
  EVERSTEP_SKILLS: z.string().min(1).optional(),
  EVERSTEP_REMOTE_MONIKERS: listSchema.pipe(
    z.array(z.url({ protocol: /^https?$/, message: "must be http:// or https:// addresses, separated by commas" })),
  ),
  EVERSTEP_REMOTE_SECRET: secret.refine((value) => value === undefined || isSigningSecret(value), {
    message: "must be Base64, with or without whsec_ before it (openssl rand -base64 32)",
  }),
  EVERSTEP_WEBHOOK_ALLOW: listSchema.pipe(
    z.array(
      z.string().refine(isAllowedEntry, "must be addresses, networks (10.0.0.0/8) or host names, separated by commas"),
    ),
  ),
  EVERSTEP_MONIKER_PROCESSES: z.coerce.number().int().min(1).max(1000).default(8),
  EVERSTEP_MONIKER_ENV: listSchema,
  EVERSTEP_MODEL: z.string().min(1).optional(),
  OPENAI_API_KEY: secret,
  OPENAI_BASE_URL: z.url().optional(),
  OPENAI_API: z.enum(["responses", "chat"]).optional(),
  ANTHROPIC_API_KEY: secret,
  ANTHROPIC_BASE_URL: z.url().optional(),
  GOOGLE_API_KEY: secret,
  GOOGLE_BASE_URL: z.url().optional(),
  OPENROUTER_API_KEY: secret,
  OPENROUTER_BASE_URL: z.url().optional(),
  OLLAMA_BASE_URL: z.url().optional(),
  AZURE_OPENAI_API_KEY: secret,
  AZURE_OPENAI_BASE_URL: z.url().optional(),
  AZURE_OPENAI_API_VERSION: z.string().min(1).optional(),
  EVERSTEP_MODEL_FIRST_TOKEN_S: z.coerce.number().min(1).max(300).default(120),
  EVERSTEP_MODEL_REPLY_S: z.coerce.number().min(1).max(86_400).default(540),
  EVERSTEP_CONTEXT_WINDOW: z.coerce.number().int().min(1000).optional(),
  EVERSTEP_PRICES: z.string().min(1).optional(),
  EVERSTEP_KEEP_CALLS: z.enum(["on", "off"]).default("on"),
  EVERSTEP_MAX_RUNNING_STEPS: z.coerce.number().int().min(1).default(500),
  EVERSTEP_MAX_PENDING_GUIDANCE: z.coerce.number().int().min(1).default(DEFAULT_GUIDANCE_LIMIT.count),
  EVERSTEP_MAX_PENDING_GUIDANCE_BYTES: z.coerce.number().int().min(1).default(DEFAULT_GUIDANCE_LIMIT.bytes),
  EVERSTEP_BLOCKED_LIMIT_S: z.coerce.number().min(1).max(86_400).default(60),
  EVERSTEP_RATE_LIMIT: z.coerce.number().int().min(1).default(60_000),
  EVERSTEP_WRONG_TOKENS: z.coerce.number().int().min(1).default(30),
  EVERSTEP_MAX_CONNECTIONS: z.coerce.number().int().min(1).default(10_000),
  EVERSTEP_MAX_CONNECTIONS_PER_ADDRESS: z.coerce.number().int().min(1).default(2000),
  EVERSTEP_SLOW_READER_S: z.coerce.number().min(0.1).max(86_400).default(30),
  EVERSTEP_START_HELD: z.enum(["0", "1"]).default("0"),
  EVERSTEP_SUPERVISE: z.enum(["0", "1"]).default("0"),
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: receiver,
  OTEL_EXPORTER_OTLP_HEADERS: secret,
  OTEL_SERVICE_NAME: z.string().min(1).optional(),
  OTEL_RESOURCE_ATTRIBUTES: z.string().min(1).optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS).default("parentbased_always_on"),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).optional(),
  OTEL_BSP_SCHEDULE_DELAY: z.coerce.number().int().min(1).optional(),
  OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: flag,
  OTEL_SDK_DISABLED: flag,
  EVERSTEP_LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});
export type Config = z.infer<typeof configSchema>;

/** An empty variable counts as unset, as in a copied .env file. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const variables = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = configSchema.safeParse(variables);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new EverstepError(
    "config_invalid",
    `${issue?.path.join(".")}: ${issue?.message}`,
    "see .env.example for every variable",
  );
}

const MONIKERS = "./monikers";

/** Defaults to the folder of monikers in the working folder, if there is one. */
export const withProjectFolder = (config: Config): Config =>
  config.EVERSTEP_MONIKERS === undefined && existsSync(MONIKERS) ? { ...config, EVERSTEP_MONIKERS: MONIKERS } : config;

export function requireTokenOffLoopback({ EVERSTEP_HOST, EVERSTEP_TOKEN }: Config): void {
  if (EVERSTEP_TOKEN !== undefined || isLoopback(EVERSTEP_HOST)) return;
  throw new EverstepError(
    "token_required",
    `EVERSTEP_HOST=${EVERSTEP_HOST} can be reached from other machines and no token is set`,
    "set EVERSTEP_TOKEN, or use 127.0.0.1",
  );
}
