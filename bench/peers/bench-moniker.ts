import { z } from "zod";
import { defineMoniker } from "../../src/monikers/moniker.ts";
import type { StepFunction } from "./peer.ts";

/** A moniker whose steps call the bench. */
export const benchMoniker = (step: StepFunction) =>
  defineMoniker({
    name: "bench",
    kind: "finite",
    description: "Does the bench's steps.",
    params: z.object({ steps: z.int(), step_ms: z.number(), piece_bytes: z.int() }),
    async step({ step: token, state }, { params, ids: { session_id, iteration } }) {
      const piece = await step(session_id, iteration, params);
      const before = Array.isArray(state["pieces"]) ? state["pieces"] : [];
      const pieces = params.piece_bytes > 0 ? [...before, piece] : before;
      const done = iteration + 1 >= params.steps;
      return { step: token, next_step: String(iteration + 1), state: { n: iteration, pieces }, done };
    },
  });
