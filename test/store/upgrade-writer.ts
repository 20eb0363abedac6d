import { writeSync } from "node:fs";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { REPORTS } from "./writer-process.ts";

/** Opens a data folder and waits with it open; it is killed during the upgrade or afterwards. */
export type UpgradeReport = { kind: "upgrading" | "opened" };

const report = (made: UpgradeReport): void => void writeSync(REPORTS, `${JSON.stringify(made)}\n`);

await openEmbeddedStore({ folder: process.argv[2] ?? "", notice: () => report({ kind: "upgrading" }) });
report({ kind: "opened" });
