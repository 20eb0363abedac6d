import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { invalid, Problem } from "./problem.ts";

/** Responses to unreadable requests; problems like all others. */
export const brokenRequests = {
  /** A URL with broken escapes. */
  frameworkErrors(error: FastifyError, _request: FastifyRequest, reply: FastifyReply): void {
    const problem = invalid([{ path: "", message: error.message }]);
    void reply.code(problem.status).type("application/problem+json").send(JSON.stringify(problem));
  },

  /** Not HTTP, or never complete. */
  clientErrorHandler(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === "ECONNRESET" || socket.destroyed) return;
    const problem = problemOf(error.code);
    const { status } = problem;
    const body = JSON.stringify(problem);
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`;
    if (socket.writable) socket.write(head + body);
    socket.destroy(error);
  },
};

function problemOf(code: string | undefined): Problem {
  if (code === "HPE_HEADER_OVERFLOW") return new Problem(431, "the address and the headers are too long");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new Problem(408, "the request took too long to arrive");
  return invalid([{ path: "", message: "this is not an HTTP request" }]);
}
