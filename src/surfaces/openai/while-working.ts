import type { FastifyReply } from "fastify";
import { SILENT_MS } from "../http/http-server.ts";

/** An agent may work for long before it has a whole answer: its client's connection is not taken for dead meanwhile. */
export async function whileWorking<Answer>({ raw: { socket } }: FastifyReply, work: Promise<Answer>): Promise<Answer> {
  socket?.setTimeout(0);
  try {
    return await work;
  } finally {
    socket?.setTimeout(SILENT_MS);
  }
}
