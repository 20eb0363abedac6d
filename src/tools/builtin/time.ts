import { z } from "zod";
import { timeAfter } from "../time-after.ts";
import type { ToolOutcome } from "../tool.ts";
import { toolError, toolResult } from "../tool-server.ts";
import { ZodToolServer, zodTool } from "../zod-tool-server.ts";

const now = zodTool({
  name: "now",
  description: "Returns the current time in UTC.",
  input: z.object({}),
  read_only: true,
  run: async () => new Date().toISOString(),
});

const wait = zodTool({
  name: "wait",
  description:
    "Waits until a time, or for a number of seconds, be it minutes or months. A message from a person ends the wait.",
  input: z.object({
    until: z.iso.datetime({ offset: true }).optional().describe("ISO 8601, with an offset or Z."),
    seconds: z.number().positive().optional(),
  }),
  read_only: true,
  async run({ until, seconds }): Promise<ToolOutcome> {
    if ((until === undefined) === (seconds === undefined)) return toolError("Give either until or seconds.");
    const time = until === undefined ? timeAfter(seconds ?? 0) : new Date(until).toISOString();
    return Date.parse(time) <= Date.now() ? toolResult(`${time} has passed.`) : { kind: "wait", until: time };
  },
});

export const timeServer = (): ZodToolServer => new ZodToolServer("time", [now, wait]);
