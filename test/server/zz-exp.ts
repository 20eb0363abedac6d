import { readFileSync } from "node:fs";
import { ServerProcess } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";
import { World } from "./world.ts";
const [payload, steps, ...slows] = process.argv.slice(2).map(Number) as number[];
const server = await ServerProcess.start(process.env["OLD"] ? { NODE_OPTIONS: `--max-old-space-size=${process.env["OLD"]}` } : {});
const world = await World.of(server);
const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))![1]) / 1024;
let n = 0;
for (const slow of slows) {
  const watcher = slow ? await Watcher.connect(server.url) : null;
  const session_id = `slow ${n++}`;
  if (watcher) {
    await watcher.follow({ session_id, after_iteration: -1 });
    (watcher.socket.io.engine.transport as any).ws.pause();
  }
  const before = rss();
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, rss())), 20);
  const t = performance.now();
  await world.api.create("count", { session_id, params: { to: steps! - 1, payload_bytes: payload! } });
  await world.ended(session_id);
  const m = await (await fetch(`${server.url}/metrics`)).text();
  const g = (name: string) => (Number(new RegExp(`^${name} (.*)$`, "m").exec(m)?.[1]) / 1e6).toFixed(0);
  console.log(slow, "before", before.toFixed(0), "peak", peak.toFixed(0), "heapused", g("nodejs_heap_size_used_bytes"), "heaptotal", g("nodejs_heap_size_total_bytes"), "ext", g("nodejs_external_memory_bytes"), "ms", (performance.now() - t).toFixed(0));
  clearInterval(timer);
  if (watcher) {
    (watcher.socket.io.engine.transport as any).ws.resume();
    await watcher.until("end", () => watcher.of("agent_step").length === steps).catch((e) => console.log(String(e), watcher.of("agent_step").length, watcher.socket.connected));
    console.log("read", (performance.now() - t).toFixed(0), rss().toFixed(0));
  }
  watcher?.[Symbol.dispose]();
}
world.close(); await server[Symbol.asyncDispose]();
