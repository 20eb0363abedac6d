import { EverstepError } from "../domain/errors.ts";
import { redactUrl } from "../domain/redact.ts";
import { ThreadChannel } from "./embedded/thread-channel.ts";
import type { Store } from "./store.ts";

export type StoreOptions = {
  /** Connections that reads and claims share, on PostgreSQL. 4 by default. */
  pool_size?: number;
  /** Called with progress messages for people while an older data folder is upgraded. */
  notice?: (text: string) => void;
  /** If given, opening waits for a database that is out of reach, and this is called with the reason from time to time. */
  waiting?: (why: EverstepError) => void;
};

/** Opens the store of a URL: `lancedb:FOLDER` or `postgres://…`. Only the engine in use is loaded. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const folder = /^lancedb:(.+)$/.exec(url)?.[1];
  if (folder) {
    // Started before anything is awaited: its thread loads LanceDB while this one loads the rest of the program.
    const channel = new ThreadChannel(folder, {}, options.notice);
    return (await import("./embedded/embedded-store.ts")).openOver(channel);
  }
  if (isShared(url)) {
    const { notice: _, waiting, ...tuning } = options;
    const { openPostgresStore } = await import("./postgres/open-postgres-store.ts");
    return openPostgresStore({ url, tuning, ...(waiting ? { waiting } : {}) });
  }
  throw new EverstepError(
    "config_invalid",
    `EVERSTEP_STORE=${describeStore(url)} names no store that this version has`,
    "use lancedb:FOLDER, for example lancedb:./data, or postgres://USER:PASSWORD@HOST/DATABASE",
  );
}

/** Whether several processes can have the store open at once. */
export const isShared = (url: string): boolean => /^postgres(?:ql)?:\/\/./.test(url);

/** A store's name for people. Text that is no store URL may have a password anywhere after its first colon. */
export function describeStore(url: string): string {
  if (url.startsWith("lancedb:")) return url;
  return isShared(url) ? redactUrl(url) : url.replace(/[:@].*$/s, ":…");
}
