import { embeddedHome } from "./embedded-home.ts";
import { promisesOnAnyStore, runtimePromises } from "./runtime-promises.ts";

runtimePromises("lancedb", embeddedHome);
promisesOnAnyStore("lancedb", embeddedHome);
