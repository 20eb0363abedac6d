import { defineTool } from "eve/tools";
import { z } from "zod";
import { countCall } from "../../../../../agent/count-call.ts";
import { TOOL } from "../../../../../agent/script.ts";

export default defineTool({
  description: TOOL.description,
  inputSchema: z.object({ session_id: z.string(), call: z.number() }),
  execute: (input) => countCall(input),
});
