import type { FastifyReply } from "fastify";
import { SILENT_MS } from "../http/http-server.ts";

/** An agent may work long before its answer is complete: keeps its client's connection from timing out. */
export async function whileWorking<Answer>({ raw: { socket } }: FastifyReply, work: Promise<Answer>): Promise<Answer> {
  socket?.setTimeout(0);
  try {
    return await work;
  } finally {
    socket?.setTimeout(SILENT_MS);
  }
}
