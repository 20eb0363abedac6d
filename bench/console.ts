import type { Bench } from "./bench.ts";
import { measureLiveSession } from "./console/live-session.ts";
import { measurePicture } from "./console/picture.ts";
import { measureSize } from "./console/size.ts";

export const consoleBench: Bench = {
  measures: "the console in a real Chromium, on a server in a process of its own",
  parts: {
    size: { measures: "what the built console weighs, compressed", run: measureSize },
    picture: {
      measures: "the page of a session with 10,000 steps: opening, drawing, moving its picture",
      run: measurePicture,
    },
    live: { measures: "the page of a session that runs 100 steps a second", run: measureLiveSession },
  },
};
