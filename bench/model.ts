import type { Bench } from "./bench.ts";
import { measureAborts } from "./model/aborts.ts";
import { measureChunks } from "./model/chunks.ts";
import { measureLoop } from "./model/loop.ts";
import { measureOutage } from "./model/outage.ts";
import { measureModelSteps } from "./model/steps.ts";
import { measureTurns } from "./model/turns.ts";

export const modelBench: Bench = {
  measures: "what Everstep adds to a language model, with one on this machine that answers at once",
  parts: {
    steps: { measures: "steps by the model alone with states of 2 to 200 KB", run: measureModelSteps },
    loop: { measures: "steps of an agent that calls tools, with states of 1 and 500 KB", run: measureLoop },
    chunks: { measures: "from the model's first word to a client of the one chat", run: measureChunks },
    turns: {
      measures: "one turn with a tool, in every wire format, beside the same request by fetch",
      run: measureTurns,
    },
    outage: {
      measures: "a hundred sessions whose provider is down for five minutes (quick: ten seconds)",
      run: measureOutage,
    },
    aborts: { measures: "from an interrupt that does not wait to the end of the model's call", run: measureAborts },
  },
};
