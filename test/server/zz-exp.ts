import { readFileSync } from "node:fs";
import { ServerProcess } from "./server-fixture.ts";
import { Watcher } from "./watcher.ts";
import { World } from "./world.ts";
const [payload, steps, slow] = process.argv.slice(2).map(Number) as [number, number, number];
const server = await ServerProcess.start();
const world = await World.of(server);
const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))![1]) / 1024;
// warm up
const warm = await world.api.create("count", { params: { to: 200, payload_bytes: payload } });
await world.status(warm.session_id, "done");
const watcher = slow ? await Watcher.connect(server.url) : null;
const session_id = "slow one";
if (watcher) {
  await watcher.follow({ session_id, after_iteration: -1 });
  (watcher.socket.io.engine.transport as any).ws.pause();
}
const before = rss();
let peak = before;
const timer = setInterval(() => (peak = Math.max(peak, rss())), 20);
const t = performance.now();
await world.api.create("count", { session_id, params: { to: steps - 1, payload_bytes: payload } });
for (;;) { const r = await fetch(`${server.url}/api/actions?limit=1`); await r.text(); const c = await (await fetch(`${server.url}/api/sessions?status=done&limit=1`)).json() as any; if (c.sessions[0]?.session_id === session_id) break; await new Promise(r => setTimeout(r, 100)); }
console.log({ payload, steps, slow, mb: payload * steps / 1e6, before, peak, after: rss(), ms: performance.now() - t, told: watcher?.told.length });
if (watcher) {
  (watcher.socket.io.engine.transport as any).ws.resume();
  await watcher.until("end", () => watcher.of("agent_step").length === steps).catch((e) => console.log(String(e), watcher.of("agent_step").length, watcher.socket.connected));
  console.log("read", performance.now() - t, "peak", peak, rss());
}
clearInterval(timer);
watcher?.[Symbol.dispose](); world.close(); await server[Symbol.asyncDispose]();
