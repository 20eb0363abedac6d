import type { Socket } from "socket.io";

/** Bytes that may wait in a client's connection before the server stops reading on for it. */
const MOST_BUFFERED = 1024 * 1024;
const DRAIN_CHECK_MS = 50;

/** Waits until the client has read most of what it was sent. */
export async function drained(socket: Socket, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && bufferedBytes(socket) > MOST_BUFFERED) {
    await new Promise((resolve) => setTimeout(resolve, DRAIN_CHECK_MS));
  }
}

function bufferedBytes({ conn }: Socket): number {
  const { transport } = conn as unknown as { transport: { socket?: { bufferedAmount?: number } } };
  const queued = (conn as unknown as { writeBuffer: { data?: unknown }[] }).writeBuffer;
  const waiting = queued.reduce((sum, { data }) => sum + (typeof data === "string" ? data.length : 0), 0);
  return (transport.socket?.bufferedAmount ?? 0) + waiting;
}
