import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerProcess } from "./server-fixture.ts";

/** Lets the test inspect a server's heap. */
export const INSPECTABLE = { NODE_OPTIONS: "--inspect=127.0.0.1:0" };

/** Megabytes that the server's main thread still uses after a garbage collection, including buffers. */
export async function heldMb(server: ServerProcess): Promise<number> {
  const address = /Debugger listening on (ws:\S+)/.exec(server.stderr)?.[1];
  assert.ok(address, "the server is inspectable");
  const inspector = new WebSocket(address);
  await once(inspector, "open");
  const call = async (id: number, method: string, params = {}): Promise<unknown> => {
    inspector.send(JSON.stringify({ id, method, params }));
    for (;;) {
      const [{ data }] = (await once(inspector, "message")) as [{ data: string }];
      const message = JSON.parse(data) as { id?: number; result?: unknown };
      if (message.id === id) return message.result;
    }
  };
  try {
    // What one collection frees lets the next one free more.
    await call(1, "HeapProfiler.collectGarbage");
    await call(2, "HeapProfiler.collectGarbage");
    const expression = "process.memoryUsage().heapUsed + process.memoryUsage().external";
    const { result } = (await call(3, "Runtime.evaluate", { expression })) as { result: { value: number } };
    return result.value / 1_000_000;
  } finally {
    inspector.close();
  }
}
