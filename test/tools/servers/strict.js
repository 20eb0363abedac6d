// Exits if it receives anything before `initialize`, as servers of some older libraries do. Counts its starts in a file.
import { appendFileSync } from "node:fs";
import { initialize, serve, text, tool } from "./json-rpc.js";

appendFileSync(process.env.STARTS, `${process.pid}\n`);
serve({
  "server/discover": () => process.exit(1),
  initialize,
  "tools/list": () => ({ tools: [tool("hello")] }),
  "tools/call": () => text("hello"),
});
