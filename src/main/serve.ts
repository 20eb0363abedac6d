import { once } from "node:events";
import { openStore } from "../store/open-store.ts";
import { readConfig } from "./config.ts";

/** Runs until SIGINT or SIGTERM, then leaves everything on disk. */
export async function serve(): Promise<void> {
  const config = readConfig(process.env);
  const stopped = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await using resources = new AsyncDisposableStack();
  const store = await openStore(config.EVERSTEP_STORE);
  resources.defer(() => store.close());
  const { sessions, queue_depth } = await store.counts();
  const live = sessions.running + sessions.waiting + sessions.paused + sessions.stopping;
  console.log(
    `everstep is up: store ${config.EVERSTEP_STORE}, ${live} live sessions, ${queue_depth} actions in the queue`,
  );
  console.log("stop it with Ctrl-C");
  await stopped;
}
