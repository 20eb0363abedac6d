import { join } from "node:path";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { runInFreshProcess } from "./fresh-process.ts";
import { build } from "./pages.ts";
import type { UpgradeAnswer } from "./upgrade-process.ts";

/** The baseline is opening the same folder without an upgrade, also in a fresh process. */
export async function measureUpgrade({ folder: parent, quick }: BenchContext): Promise<Figure[]> {
  const folder = join(parent, "upgrade");
  const steps = quick ? 100_000 : 1_000_000;
  const store = await openEmbeddedStore({ folder });
  await build({ steps, store, loads: [] });
  await store.close();
  const plain = await runInFreshProcess<UpgradeAnswer>("upgrade-process.ts", [folder, "as it is"], "by itself");
  const upgrade = await runInFreshProcess<UpgradeAnswer>("upgrade-process.ts", [folder, "upgrade"], "by itself");
  const again = await runInFreshProcess<UpgradeAnswer>("upgrade-process.ts", [folder, "upgrade"], "by itself");
  if (plain.upgrades + again.upgrades > 0 || upgrade.upgrades !== 1)
    throw new Error("the folder was not upgraded exactly once");
  const of = `${steps.toLocaleString("en-US")} steps`;
  return [
    { figure: `opened as it is, ${of}`, measured: plain.opened / 1000, unit: "s", bar: null },
    {
      figure: `opened with one more column in its steps, ${of}`,
      measured: upgrade.opened / 1000,
      unit: "s",
      bar: below(5),
    },
    { figure: `opened once it has the column, ${of}`, measured: again.opened / 1000, unit: "s", bar: null },
  ];
}
