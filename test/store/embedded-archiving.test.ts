import { storeConformance, storeVolume } from "./conformance.ts";
import { openLanceHome } from "./embedded-home.ts";

storeVolume("lancedb", () => openLanceHome());
storeConformance("lancedb that moves rows constantly", () =>
  openLanceHome({ move_after_rows: 1, move_after_ms: 1, compact_after_fragments: 2 }),
);
