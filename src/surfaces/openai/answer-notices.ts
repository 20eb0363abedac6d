import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyReply } from "fastify";
import type { EventStream, EventStreams } from "../event-streams.ts";

export const GUIDANCE_NOTICE =
  "The agent is still at work on an earlier message; this one was given to it as guidance.";

export function openStream(streams: EventStreams, reply: FastifyReply): EventStream {
  reply.hijack();
  return streams.open(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
}
