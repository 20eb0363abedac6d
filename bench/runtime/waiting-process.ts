import { askedToStop, say } from "./child.ts";
import { idleCpu } from "./idle-cpu.ts";
import { type Memory, memoryNow } from "./memory.ts";
import { News } from "./news.ts";
import { type OpenRuntime, openRuntime } from "./open-runtime.ts";

export type WaitingMessage = {
  /** Just after the start, after that many sessions came and went, and with all of them waiting. */
  fresh: Memory;
  empty: Memory;
  full: Memory;
  created_ms: number;
  /** Share of one CPU. */
  idle_cpu: number;
  /** Milliseconds, one for each echo. */
  latencies: number[];
};

const [folder, sessions, idle_ms, echoes] = process.argv.slice(2);
if (!folder || !sessions || !idle_ms || !echoes)
  throw new Error("a folder, a number of sessions, a time to idle and a number of echoes are needed");

const AT_ONCE = 500;
const stopped = askedToStop();
const news = new News();
let settled = 0;
let committed = 0;

await using runtime = await openRuntime(folder, {
  onCommitted({ actions, steps }) {
    for (const { processed, action_type } of actions ?? [])
      if (processed && action_type === "agent_create") settled += 1;
    committed += steps?.length ?? 0;
    news.tell();
  },
});
const fresh = memoryNow();
// Warm-up: memory that the program takes when it is first this busy is not the cost of a waiting session.
await createSessions(runtime, Number(sessions), { moniker: "count", params: { to: 0 } });
await news.until("every session that counts is done", () => committed === Number(sessions));
await runtime.store.checkpoint();
const empty = memoryNow();
const begun = performance.now();
const ids = await createSessions(runtime, Number(sessions), { moniker: "echo" });
const created_ms = performance.now() - begun;
// Otherwise rows would be archived later, during the idle time.
await runtime.store.checkpoint();
const full = memoryNow();
const idle_cpu = await idleCpu(Number(idle_ms));
const latencies = await measureEchoes(runtime, ids, Number(echoes));
say({ fresh, empty, full, created_ms, idle_cpu, latencies } satisfies WaitingMessage);
await stopped;

/** Resolves when every creation is settled. */
async function createSessions(
  target: OpenRuntime,
  count: number,
  payload: { moniker: string; params?: { to: number } },
): Promise<string[]> {
  const created: string[] = [];
  const settledBefore = settled;
  while (created.length < count) {
    const some = Math.min(AT_ONCE, count - created.length);
    const accepted = await Promise.all(
      Array.from({ length: some }, () =>
        target.submit({ action_type: "agent_create", agent_id: `agent-${payload.moniker}`, payload }),
      ),
    );
    created.push(...accepted.map(({ session_id }) => session_id));
  }
  await news.until("every creation is settled", () => settled - settledBefore === count);
  return created;
}

/** From the request to the commit of the reply, one session after another. */
async function measureEchoes(target: OpenRuntime, session_ids: readonly string[], count: number): Promise<number[]> {
  const taken: number[] = [];
  for (let index = 0; index < count; index++) {
    const session_id = session_ids[Math.floor((index / count) * session_ids.length)] as string;
    const before = committed;
    const sent = performance.now();
    await target.submit({ action_type: "agent_input", session_id, payload: { text: "hello" } });
    await news.until("the session answered", () => committed > before);
    taken.push(performance.now() - sent);
  }
  return taken;
}
