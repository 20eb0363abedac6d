import { crashesSuite } from "./suites/crashes.ts";
import { outagesSuite } from "./suites/outages.ts";
import { restartsSuite } from "./suites/restarts.ts";

// In one process, so that they share one homeserver.
crashesSuite();
outagesSuite();
restartsSuite();
