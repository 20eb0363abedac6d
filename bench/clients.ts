import type { Bench } from "./bench.ts";
import { measureEventStreams } from "./clients/event-streams.ts";
import { measureFirstText } from "./clients/first-text.ts";
import { measureMcpGuidance } from "./clients/mcp-guidance.ts";

export const clientsBench: Bench = {
  measures: "other people's clients against `everstep serve` in a process of its own",
  parts: {
    mcp: { measures: "guidance by the official MCP client to its receipt", run: measureMcpGuidance },
    "first-text": {
      measures: "the first text of an answer by the `openai` package and over a socket",
      run: measureFirstText,
    },
    streams: { measures: "500 readers of server-sent events and one that never reads", run: measureEventStreams },
  },
};
