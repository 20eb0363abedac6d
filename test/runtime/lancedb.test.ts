import { embeddedHome } from "./embedded-home.ts";
import { runtimePromises } from "./runtime-promises.ts";

runtimePromises("lancedb", embeddedHome);
