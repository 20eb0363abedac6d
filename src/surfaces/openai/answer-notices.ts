import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyReply } from "fastify";
import type { EventStream, EventStreams } from "../event-streams.ts";

export const GUIDANCE_NOTICE = "The agent is still working on an earlier message; this one was sent to it as guidance.";

export function openStream(streams: EventStreams, reply: FastifyReply): EventStream {
  reply.hijack();
  return streams.open(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
}
