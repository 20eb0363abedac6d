import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type KeyHoldingProxy = AsyncDisposable & {
  url: string;
  /** Holds back to-device messages from now on. */
  hold: () => void;
  /** Sends the held messages with the next sync. */
  release: () => void;
};

type Sync = { to_device?: { events: unknown[] } };

/** A real homeserver whose to-device messages arrive late, as from a distant server: keys after the messages that need them. */
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
      const answer = await fetch(`${homeserver}${url}`, {
        method,
        signal: leaving.signal,
        headers: { authorization: headers.authorization ?? "", "content-type": "application/json" },
        ...(method === "GET" ? {} : { body: Buffer.concat(chunks) }),
      });
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
