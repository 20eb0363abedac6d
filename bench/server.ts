import type { Bench } from "./bench.ts";
import { measureGuidance } from "./server/guidance.ts";
import { measureRequests } from "./server/requests.ts";
import { measureSockets } from "./server/sockets.ts";
import { measureStart } from "./server/start.ts";

export const serverBench: Bench = {
  measures: "`everstep serve` in a process of its own, over HTTP and sockets",
  parts: {
    start: { measures: "time until a fresh server answers", run: measureStart },
    requests: { measures: "actions, pages of steps and messages with 1 and 32 connections", run: measureRequests },
    guidance: { measures: "from guidance over HTTP to its receipt over a socket", run: measureGuidance },
    sockets: { measures: "500 sockets that follow 50 sessions", run: measureSockets },
  },
};
