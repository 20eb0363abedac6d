import { storeConformance } from "./conformance.ts";
import { openLanceHome } from "./lancedb-home.ts";

storeConformance("lancedb", () => openLanceHome());
