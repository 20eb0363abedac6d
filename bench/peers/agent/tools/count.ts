import { defineTool, z } from "everstep/moniker";
import { countCall } from "../count-call.ts";
import { TOOL } from "../script.ts";

/** Neither read-only nor idempotent: before repeating a call that may have happened, Everstep asks. */
export default defineTool({
  description: TOOL.description,
  input: z.object({ session_id: z.string(), call: z.int() }),
  run: (input) => countCall(input),
});
