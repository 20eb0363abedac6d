import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Random } from "../store/random.ts";
import { malformedFrame, malformedRequest } from "./malformed.ts";

const AT_ONCE = 32;
/** A connection that the server keeps open, because it waits for more, is left after so long. */
const PATIENCE_MS = 250;

type Target = { url: string; token?: string };
/** How many times each status was returned, over all connections. */
export type Statuses = Map<number, number>;

/** Sends malformed requests over raw connections, which are ended, reset or abandoned at random moments. */
export async function sendMalformedRequests(target: Target, random: Random, count: number): Promise<Statuses> {
  const statuses: Statuses = new Map();
  let left = count;
  await concurrently(async () => {
    while (left > 0) {
      const requests = Array.from({ length: Math.min(left, 1 + random.below(4)) }, () => malformedRequest(random));
      left -= requests.length;
      await converse(target, Buffer.concat(requests), random, statuses);
    }
  });
  return statuses;
}

/** Sends malformed frames over properly opened WebSockets. Resolves with how many of them were opened. */
export async function sendMalformedFrames(target: Target, random: Random, count: number): Promise<number> {
  const opened: Statuses = new Map();
  let left = count;
  await concurrently(async () => {
    while (left > 0) {
      const surface = random.pick(["socket.io", "agent_ws"] as const);
      const frames = Array.from({ length: Math.min(left, 1 + random.below(8)) }, () => malformedFrame(random, surface));
      left -= frames.length;
      await converse(target, handshake(target, surface), random, opened, frames);
    }
  });
  return opened.get(101) ?? 0;
}

const concurrently = (work: () => Promise<void>): Promise<unknown> =>
  Promise.all(Array.from({ length: AT_ONCE }, work));

function handshake({ token }: Target, surface: "socket.io" | "agent_ws"): Buffer {
  const path = surface === "agent_ws" ? "/agent_ws/" : "/socket.io/?EIO=4&transport=websocket";
  const headers = ["Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  if (token !== undefined) headers.push(`Authorization: Bearer ${token}`);
  return Buffer.from(
    [`GET ${path} HTTP/1.1`, ...headers, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""].join("\r\n"),
  );
}

async function converse(
  { url, token }: Target,
  start: Buffer,
  random: Random,
  statuses: Statuses,
  frames?: readonly Buffer[],
): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  const closed = once(socket, "close");
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    answer += chunk.toString("latin1");
  });
  const opened = Promise.race([once(socket, "connect"), closed]);
  await opened.catch(() => {});
  socket.write(start);
  if (frames) {
    if (await heard(socket, () => answer.includes("\r\n\r\n"))) {
      // Socket.IO accepts frames after its open packet, and events after the connection has joined.
      await heard(socket, () => answer.length > answer.indexOf("\r\n\r\n") + 4);
      if (random.chance(0.7)) socket.write(text(`40${token === undefined ? "" : JSON.stringify({ token })}`));
      for (const frame of frames) socket.write(frame);
    }
  }
  const ending = random.pick(["reset", "end", "wait"] as const);
  if (ending === "reset") socket.resetAndDestroy();
  if (ending === "end") socket.end();
  const leave = setTimeout(() => socket.resetAndDestroy(), PATIENCE_MS);
  await closed.catch(() => {});
  clearTimeout(leave);
  for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d{3}) /gm))
    statuses.set(Number(status), (statuses.get(Number(status)) ?? 0) + 1);
}

/** Waits for data from the server; false if the connection ends or stays silent. */
function heard(socket: Socket, isEnough: () => boolean): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const look = (): void => {
    if (isEnough()) resolve(true);
  };
  const give = (): void => resolve(isEnough());
  socket.on("data", look).once("close", give);
  const timer = setTimeout(give, PATIENCE_MS * 4);
  look();
  return promise.finally(() => {
    clearTimeout(timer);
    socket.off("data", look).off("close", give);
  });
}

function text(payload: string): Buffer {
  const bytes = Buffer.from(payload);
  return Buffer.concat([Buffer.from([0x81, 0x80 | bytes.length, 0, 0, 0, 0]), bytes]);
}
