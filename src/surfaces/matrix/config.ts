import { decodeRecoveryKey } from "matrix-js-sdk/lib/crypto-api/recovery-key.js";
import { z } from "zod";
import { EverstepError } from "../../domain/errors.ts";
import { globs } from "./text/globs.ts";

const secret = z.string().min(1).optional();

/** `fetch` refuses URLs with credentials at every call, and quotes them in its error. */
const urlWithoutCredentials = z
  .url()
  .refine((url) => !/^[^/?#]*\/\/[^/?#]*@/.test(url), "must not carry a user or a password");

function isRecoveryKey(text: string): boolean {
  try {
    decodeRecoveryKey(text);
    return true;
  } catch {
    return false;
  }
}

const configSchema = z.object({
  MATRIX_HOMESERVER: urlWithoutCredentials,
  MATRIX_USER_ID: z.string().regex(/^@[^:]+:.+$/, "must be a whole user id such as @everstep:example.org"),
  MATRIX_ACCESS_TOKEN: secret,
  MATRIX_PASSWORD: secret,
  MATRIX_ALLOWED_USERS: z.string().min(1).transform(globs),
  MATRIX_OPERATORS: z.string().default("").transform(globs),
  MATRIX_PLATFORM_BACKEND: z.enum(["real", "mock"]).default("real"),
  MATRIX_STATE: z.string().min(1).default("./matrix-state"),
  MATRIX_ENCRYPTION: z.enum(["on", "off"]).default("on"),
  MATRIX_THREADS: z.enum(["shared", "own"]).default("shared"),
  MATRIX_UNKNOWN_COMMANDS: z.enum(["answer", "agent"]).default("answer"),
  MATRIX_RECOVERY_KEY: secret.refine((key) => key === undefined || isRecoveryKey(key), "is no recovery key of Matrix"),
  MATRIX_LANGUAGE: z.enum(["en", "ru"]).default("en"),
  AGENT_WS_URL: z.string().min(1).default("ws://127.0.0.1:4180/agent_ws/"),
  AGENT_BASE_URL: urlWithoutCredentials.default("http://127.0.0.1:4180"),
  EVERSTEP_TOKEN: secret,
  EVERSTEP_SUPERVISE: z.enum(["0", "1"]).default("0"),
  EVERSTEP_LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});
export type MatrixConfig = z.infer<typeof configSchema>;

/** An empty variable counts as unset, as in a copied .env file. */
export function readMatrixConfig(environment: NodeJS.ProcessEnv): MatrixConfig {
  const variables = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = configSchema.safeParse(variables);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const name = issue?.path.join(".") ?? "";
    const what = variables[name] === undefined ? "is not set" : (issue?.message ?? "is wrong");
    throw new EverstepError("config_invalid", `${name}: ${what}`, "docs/matrix.md tells how to set up the bot");
  }
  if (parsed.data.MATRIX_ACCESS_TOKEN === undefined && parsed.data.MATRIX_PASSWORD === undefined)
    throw new EverstepError(
      "config_invalid",
      "neither MATRIX_ACCESS_TOKEN nor MATRIX_PASSWORD is set",
      "set one of them; docs/matrix.md tells how to get it",
    );
  return parsed.data;
}
