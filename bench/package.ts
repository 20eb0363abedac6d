import type { Bench } from "./bench.ts";
import { measureInstalled } from "./package/installed.ts";

export const packageBench: Bench = {
  measures: "what `npm pack` makes, installed into an empty folder",
  parts: {
    installed: { measures: "how large it is, packed and installed, and how soon it answers", run: measureInstalled },
  },
};
