import { z } from "zod";
import { EverstepError } from "../domain/errors.ts";

const configSchema = z.object({
  EVERSTEP_STORE: z.string().min(1).default("lancedb:./data"),
});
export type Config = z.infer<typeof configSchema>;

export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const parsed = configSchema.safeParse(environment);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new EverstepError(
    "config_invalid",
    `${issue?.path.join(".")}: ${issue?.message}`,
    "see .env.example for every variable",
  );
}
