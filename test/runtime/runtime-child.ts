import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { Runtime } from "../../src/main/runtime.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import type { Moniker } from "../../src/monikers/moniker.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { ChildOrder, ChildReport, ParentMessage } from "./runtime-process.ts";

// A runtime in a separate process, which its parent controls and may kill at any moment.
const { url, workspace, ...options } = JSON.parse(process.argv[2] ?? "{}") as ChildOrder;
const report = (message: ChildReport): void => void process.send?.(message);

/** Starts and never ends; it ignores its signal, too. */
const stuck = (name: string, kind: Moniker["kind"]): Moniker => ({
  name,
  kind,
  description: "Never ends its step.",
  params: z.looseObject({}),
  step: ({ guidance = [] }, { ids }) => {
    report({ kind: "started", session_id: ids.session_id, guidance });
    return new Promise(() => {});
  },
});

/** Does something irreversible in a step marked `once`, and only if that step was not started before. */
const effectOnce: Moniker = {
  name: "effect_once",
  kind: "finite",
  description: "Writes a line once.",
  params: z.looseObject({ hold_ms: z.number().default(0) }),
  async step({ step, state }, { ids: { session_id }, attempt, params }) {
    if (step === "0") return { step, next_step: "act", state, done: false, once: true };
    appendFileSync(join(workspace, "effects"), `${session_id} ${attempt.number}\n`);
    report({ kind: "started", session_id, guidance: [] });
    if (attempt.number === 1) await pause((params as { hold_ms: number }).hold_ms);
    return { step, next_step: "end", state, data: { ...attempt }, done: true };
  },
};

/** Starts ten sessions per step until there are enough, then waits until all have ended. */
const fanOut: Moniker = {
  name: "fan_out",
  kind: "finite",
  description: "Starts sessions and waits for them.",
  params: z.looseObject({ children: z.number() }),
  step({ step, state, guidance = [] }, { params }) {
    const { children } = params as { children: number };
    const heard = Number(state["heard"] ?? 0) + guidance.length;
    const started = Number(state["started"] ?? 0);
    const some = Math.min(10, children - started);
    const actions = Array.from({ length: some }, () => ({
      action_type: "agent_create" as const,
      moniker: "count",
      params: { to: 2, delay_ms: 5 },
    }));
    const after = { heard, started: started + some };
    const rest = { step, next_step: step, state: after, done: heard === children };
    return some > 0 ? { ...rest, actions } : { ...rest, wait: {} };
  },
};

const monikers = [fanOut, stuck("stuck", "continuous"), stuck("stuck_reactive", "reactive"), effectOnce];
const catalog = new Map([
  ...(await loadCatalog(undefined)),
  ...monikers.map((moniker) => [moniker.name, moniker] as const),
]);
const store = await openStore(url);
const runtime = new Runtime({ store, catalog, workspace, ...options });

const reading = new AbortController();
const telling = (async () => {
  for await (const event of runtime.events.follow({ all: true }, reading.signal)) {
    if (event.kind === "step")
      report({ kind: "step", session_id: event.step.session_id, iteration: event.step.iteration });
    if (event.kind === "session") {
      const { session_id, status } = event.session;
      report({ kind: "status", session_id, status });
    }
  }
})();

process.on("message", (message: ParentMessage) => void obey(message));
await runtime.start();
report({ kind: "ready" });

async function mayGoOn(session_id: string, until: "resting" | "ended"): Promise<boolean> {
  const { status, pause_reason } = (await store.getSession(session_id)) ?? { status: "done", pause_reason: null };
  if (until === "resting") return status === "running";
  // Held after too many kills in one step; a person resumes it.
  if (pause_reason?.kind === "crashes") await runtime.queue.submit({ action_type: "agent_resume", session_id });
  return status !== "done" && status !== "error";
}

async function obey(message: ParentMessage): Promise<void> {
  if (message.kind === "submit") {
    const outcome = await runtime.queue.submit(message.request);
    report({ kind: "submitted", id: message.id, outcome });
    return;
  }
  if (message.kind === "await_rest") {
    for (const session_id of message.session_ids) while (await mayGoOn(session_id, message.until)) await pause(10);
    report({ kind: "rested" });
    return;
  }
  await runtime.stop();
  reading.abort();
  await telling;
  await store.close();
  // From here on nothing may keep the process alive.
  process.disconnect();
}
