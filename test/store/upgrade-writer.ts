import { writeSync } from "node:fs";
import { openLanceStore } from "../../src/store/lancedb/lancedb-store.ts";
import { REPORTS } from "./writer-process.ts";

/** Opens a data folder and waits with it open; it is killed meanwhile or then. */
export type UpgradeReport = { kind: "upgrading" | "opened" };

const report = (made: UpgradeReport): void => void writeSync(REPORTS, `${JSON.stringify(made)}\n`);

await openLanceStore({ folder: process.argv[2] ?? "", notice: () => report({ kind: "upgrading" }) });
report({ kind: "opened" });
