import { EverstepError } from "../domain/errors.ts";
import { readConfig } from "./config.ts";

/** The data folder named by EVERSTEP_STORE, for a command that needs one; `instead` is the advice for a database. */
export function configuredFolder(toDo: string, instead: string): string {
  const { EVERSTEP_STORE } = readConfig(process.env);
  const folder = /^lancedb:(.+)$/.exec(EVERSTEP_STORE)?.[1];
  if (folder !== undefined) return folder;
  throw new EverstepError("config_invalid", `EVERSTEP_STORE is not a folder to ${toDo}`, instead);
}
