import { embeddedHome } from "./embedded-home.ts";
import { runtimeUnderFaults } from "./runtime-promises.ts";

runtimeUnderFaults("lancedb", embeddedHome);
