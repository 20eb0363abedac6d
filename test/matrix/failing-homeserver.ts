import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type FailingHomeserver = AsyncDisposable & {
  url: string;
  /** Bodies of the messages sent, by room. */
  sent: Map<string, string[]>;
  /** Resolves when this many messages were sent to a room. */
  until: (room_id: string, count: number) => Promise<void>;
};

/** Does what Synapse cannot be made to do: responds to everything, but accepts no message in some rooms. */
export async function failingHomeserver(fails: (room_id: string, body: string) => boolean): Promise<FailingHomeserver> {
  const sent = new Map<string, string[]>();
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    const room_id = /\/rooms\/([^/]+)\/send\//.exec(request.url ?? "")?.[1];
    let text = "";
    request.on("data", (part: Buffer) => {
      text += String(part);
    });
    request.on("end", () => {
      const answer = (status: number, body: object): void =>
        void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      if (room_id === undefined) return answer(200, { user_id: "@bot:x" });
      const room = decodeURIComponent(room_id);
      const { body } = JSON.parse(text) as { body: string };
      if (fails(room, body)) return answer(502, { error: "no worker for this room" });
      sent.set(room, [...(sent.get(room) ?? []), body]);
      answer(200, { event_id: `$${Math.random()}` });
      for (const wake of waiting) wake();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const until = async (room_id: string, count: number): Promise<void> => {
    while ((sent.get(room_id)?.length ?? 0) < count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      await promise;
      waiting.delete(resolve);
    }
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent,
    until,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
