// An MCP server whose tool must not be called twice without consent. Each call is recorded before anything else happens.
import { appendFileSync } from "node:fs";
import { initialize, serve, text, tool } from "../../test/tools/servers/json-rpc.js";

const pay = tool("pay", {
  inputSchema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
});
const look = tool("look", { annotations: { readOnlyHint: true } });

serve({
  initialize,
  "tools/list": () => ({ tools: [pay, look] }),
  "tools/call": async ({ name, arguments: args }) => {
    if (name === "look") return text("all is well");
    appendFileSync(process.env.PAYMENTS, `${args.key}\n`);
    // Long enough to be cut short now and then.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 1000));
    return text(`paid ${args.key}`);
  },
});
