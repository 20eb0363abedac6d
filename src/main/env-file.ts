import { existsSync } from "node:fs";
import { EverstepError } from "../domain/errors.ts";

const FILE = ".env";

/** Loads `.env` of the working folder. Variables already set win. Returns what is wrong with the file. */
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
