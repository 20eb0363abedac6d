import type { Bench } from "./bench.ts";
import { measureGuidance } from "./server/guidance.ts";
import { measureLargeRequests } from "./server/large-requests.ts";
import { measureRequests } from "./server/requests.ts";
import { measureSilentClients } from "./server/silent-clients.ts";
import { measureSockets } from "./server/sockets.ts";
import { measureStart } from "./server/start.ts";

export const serverBench: Bench = {
  measures: "`everstep serve` in a process of its own, over HTTP and sockets",
  parts: {
    start: { measures: "time until a fresh server answers", run: measureStart },
    requests: { measures: "actions, pages of steps and messages with 1 and 32 connections", run: measureRequests },
    guidance: { measures: "from guidance over HTTP to its receipt over a socket", run: measureGuidance },
    "silent-clients": {
      measures: "memory with 1,000 idle sockets, 10 subscribers that never read and 1,000 steps/s",
      run: measureSilentClients,
    },
    "large-requests": {
      measures: "how long one request of a mebibyte holds up the event loop",
      run: measureLargeRequests,
    },
    sockets: { measures: "500 sockets that follow 50 sessions", run: measureSockets },
  },
};
