import { existsSync } from "node:fs";
import { EverstepError } from "../domain/errors.ts";

const FILE = ".env";

/** Reads `.env` of the working folder into the environment. What the environment has already wins. Answers what is wrong with it. */
export function loadEnvFile(): EverstepError | null {
  if (!existsSync(FILE)) return null;
  try {
    process.loadEnvFile(FILE);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return new EverstepError(
      "config_invalid",
      `${FILE} cannot be read (${code ?? message})`,
      "make it readable",
      error,
    );
  }
}
