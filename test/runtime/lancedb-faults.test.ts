import { embeddedHome } from "./embedded-home.ts";
import { faultsOnAnyStore, runtimeUnderFaults } from "./runtime-promises.ts";

runtimeUnderFaults("lancedb", embeddedHome);
faultsOnAnyStore("lancedb", embeddedHome);
