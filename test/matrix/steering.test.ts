import { resettingSuite } from "./suites/resetting.ts";
import { steeringSuite } from "./suites/steering.ts";

// In one process, so that they share one homeserver.
resettingSuite();
steeringSuite();
