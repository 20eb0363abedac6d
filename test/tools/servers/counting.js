// Counts its starts and calls in files. Calls may never return, end the process, or change the list of tools.
import { appendFileSync } from "node:fs";
import { initialize, send, serve, text, tool } from "./json-rpc.js";

const note = (what) => appendFileSync(process.env.NOTES, `${what}\n`);
const tools = [tool("count"), tool("hang"), tool("exit"), tool("grow"), tool("fail")];
let running = 0;
note("start");
serve({
  initialize,
  "tools/list": ({ cursor } = {}) => {
    // Two per page.
    const from = Number(cursor ?? 0);
    const nextCursor = from + 2 < tools.length ? { nextCursor: String(from + 2) } : {};
    return { tools: tools.slice(from, from + 2), ...nextCursor };
  },
  "tools/call": async ({ name }, id) => {
    note(name);
    if (name === "exit") process.exit(3);
    if (name === "fail") return send({ id, error: { code: -32603, message: "it broke" } });
    if (name === "hang") return undefined;
    if (name === "grow") {
      tools.push(tool("new"));
      send({ method: "notifications/tools/list_changed" });
    }
    running += 1;
    const at_once = running;
    await new Promise((resolve) => setTimeout(resolve, 20));
    running -= 1;
    return text(String(at_once));
  },
});
