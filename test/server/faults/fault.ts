import { z } from "zod";
import { defineMoniker } from "../../../src/monikers/moniker.ts";

// At SIGUSR2 something fails that belongs to no step and no request, as a defect deep inside the program would.
process.on("SIGUSR2", () => {
  if (process.env["FAULT"] === "rejection") void Promise.reject(new Error("a defect"));
  else if (process.env["FAULT"] === "reset")
    throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" });
  else throw new Error("a defect");
});

export default defineMoniker({
  name: "fault",
  kind: "reactive",
  description: "Does nothing; what loads it can be made to fail.",
  params: z.object({}),
  step: async ({ step, state }) => ({ step, next_step: step, state, done: false }),
});
