import { archivingConformance, storeVolume } from "./conformance.ts";
import { openLanceHome } from "./embedded-home.ts";

storeVolume("lancedb", () => openLanceHome());
archivingConformance("lancedb that moves rows constantly", () =>
  openLanceHome({ move_after_rows: 10, move_after_ms: 5, compact_after_fragments: 2 }),
);
