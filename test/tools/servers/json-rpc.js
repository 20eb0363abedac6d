import { createInterface } from "node:readline";

/** The smallest server a test needs: handles each request by its method, or returns an error if there is none. */
export function serve(methods) {
  createInterface({ input: process.stdin }).on("line", (line) => void answer(methods, JSON.parse(line)));
}

async function answer(methods, { id, method, params }) {
  if (id === undefined) return;
  if (!methods[method]) return send({ id, error: { code: -32601, message: "Method not found" } });
  const result = await methods[method](params, id);
  if (result !== undefined) send({ id, result });
}

export const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

/** How a server of the 2025 revision describes itself. */
export const initialize = () => ({
  protocolVersion: "2025-11-25",
  capabilities: { tools: { listChanged: true } },
  serverInfo: { name: "test", version: "1" },
});

export const tool = (name, more = {}) => ({ name, description: name, inputSchema: { type: "object" }, ...more });
export const text = (value) => ({ content: [{ type: "text", text: value }] });
