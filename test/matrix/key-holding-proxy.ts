import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

export type KeyHoldingProxy = AsyncDisposable & {
  url: string;
  /** Holds back to-device messages from now on. */
  hold: () => void;
  /** Sends the held messages with the next sync. */
  release: () => void;
};

type Sync = { to_device?: { events: unknown[] } };

/** Longer than a person's client takes to see a new device and to write to it. */
const UPLOAD_PAUSE_MS = 2_000;

/** A device that is uploaded together with its keys is published before them, as Synapse does, but much earlier. */
function slowUpload(url: string, body: string): string[] {
  if (!url.endsWith("/keys/upload")) return [body];
  const { device_keys, ...keys } = JSON.parse(body) as { device_keys?: unknown };
  if (device_keys === undefined || Object.keys(keys).length === 0) return [body];
  return [JSON.stringify({ device_keys }), JSON.stringify(keys)];
}

/**
 * A real homeserver at its slowest: keys that were uploaded with a device arrive after it, and on demand to-device messages
 * arrive late, as from a distant server: keys after the messages that need them.
 */
export async function keyHoldingProxy(homeserver: string): Promise<KeyHoldingProxy> {
  const held: unknown[] = [];
  let isHolding = false;
  const late = (sync: Sync): Sync => {
    const events = sync.to_device?.events ?? [];
    if (!isHolding) return { ...sync, to_device: { events: [...held.splice(0), ...events] } };
    held.push(...events);
    return { ...sync, to_device: { events: [] } };
  };
  const server = createServer();
  server.on("request", (request, response) => void pass(request, response));
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // A request of a killed bot must not consume what is meant for the next one.
    const leaving = new AbortController();
    response.once("close", () => leaving.abort());
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = "GET", url = "", headers } = request;
      const forward = (body: string): Promise<Response> =>
        fetch(`${homeserver}${url}`, {
          method,
          signal: leaving.signal,
          headers: { authorization: headers.authorization ?? "", "content-type": "application/json" },
          ...(method === "GET" ? {} : { body }),
        });
      const parts = slowUpload(url, Buffer.concat(chunks).toString());
      for (const part of parts.slice(0, -1)) {
        await forward(part);
        await pause(UPLOAD_PAUSE_MS);
      }
      const answer = await forward(parts.at(-1) ?? "");
      const text = await answer.text();
      leaving.signal.throwIfAborted();
      // A sync without `since` only fetches the bot's invites and consumes no to-device messages.
      const isSync = /\/sync\?(?:.*&)?since=/.test(url) && answer.ok;
      response
        .writeHead(answer.status, { "content-type": "application/json" })
        .end(isSync ? JSON.stringify(late(JSON.parse(text) as Sync)) : text);
    } catch {
      response.destroy();
    }
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold: () => {
      isHolding = true;
    },
    release: () => {
      isHolding = false;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
