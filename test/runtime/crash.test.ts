import { embeddedHome } from "./embedded-home.ts";
import { crash } from "./promises/crash.ts";

crash("lancedb", embeddedHome);
