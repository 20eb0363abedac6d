import { storeConformance } from "./conformance.ts";
import { openLanceHome } from "./embedded-home.ts";

storeConformance("lancedb", () => openLanceHome());
