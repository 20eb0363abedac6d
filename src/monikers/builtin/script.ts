import { z } from "zod";
import { frameOutSchema } from "../../domain/step-frame.ts";
import { defineMoniker } from "../moniker.ts";

/** Replays frames, for tests and demos. Missing fields get defaults: the next number, the old state, done at the last frame. */
export const script = defineMoniker({
  name: "script",
  kind: "finite",
  description: "Replays a list of frames, one per step.",
  params: z.object({ frames: z.array(frameOutSchema.partial()).min(1).describe("What each step returns.") }),
  step({ step, state }, { params, ids }) {
    const index = Math.min(ids.iteration, params.frames.length - 1);
    const frame = params.frames[index] ?? {};
    const { next_step = String(index + 1), done = index === params.frames.length - 1 } = frame;
    return { ...frame, step, next_step, state: frame.state ?? state, done };
  },
});
