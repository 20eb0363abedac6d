import { Runtime } from "../../src/main/runtime.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { askedToStop, say, sharedClock } from "../runtime/child.ts";
import { hear } from "../runtime/hear.ts";

export type WorkerSays =
  | { kind: "ready"; pid: number }
  | { kind: "committed"; at: number; sessions: string[]; actions: string[] };

// `everstep worker` without the command line; if the bench asks for it, commits are reported.
const [url, workspace, tells] = process.argv.slice(2) as [string, string, "tells" | "silent"];
const store = await openStore(url);
const heard = tells === "tells" ? withCommitReports(store) : store;
const runtime = new Runtime({ store: heard, catalog: await loadCatalog(undefined), workspace });
await runtime.start();
tell({ kind: "ready", pid: process.pid });
await askedToStop();
await runtime.stop();
await store.close();

function tell(message: WorkerSays): void {
  say(message);
}

/** Reports, after each commit, which sessions took a step and which actions were settled. */
function withCommitReports(real: Store): Store {
  return hear(real, ({ steps = [], actions = [] }) =>
    tell({
      kind: "committed",
      at: sharedClock(),
      sessions: steps.map(({ session_id }) => session_id),
      actions: actions.filter(({ processed }) => processed).map(({ action_id }) => action_id),
    }),
  );
}
