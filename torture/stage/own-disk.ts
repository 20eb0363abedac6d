import { join } from "node:path";
import { fillUp, makeSpace } from "../../test/store/full-disk.ts";
import { type Mounted, makeDisk, missingForMounts, mountDisk } from "../../test/store/mounts.ts";
import type { Excuses, Stage } from "./stage.ts";

/** Several times what half an hour writes on a fast machine: only faults fill it. It takes that room as it is written. */
const DISK_BYTES = 2 ** 32;

/** A small disk mounted at a folder; null, with a log line, if this machine cannot mount one. */
export async function ownDisk(folder: string): Promise<Mounted | null> {
  const missing = missingForMounts();
  if (missing === null) {
    const image = join(folder, "disk.img");
    await makeDisk(image, DISK_BYTES);
    return mountDisk(image, join(folder, "disk"));
  }
  if (process.env["EVERSTEP_TEST_ALL"] === "1") throw new Error(missing);
  console.log(`the disk will not fill up: ${missing}`);
  return null;
}

/** The disk as faults fill it. `emptied`: what an operator does once there is room again. */
export function fillable(disk: Mounted, excuses: Excuses, emptied = async (): Promise<void> => {}): Stage["disk"] {
  let full = Promise.withResolvers<void>();
  return {
    async fill(free_bytes) {
      full = Promise.withResolvers<void>();
      void excuses.during(() => full.promise);
      await fillUp(disk, free_bytes);
    },
    async empty() {
      await makeSpace(disk);
      await emptied();
      full.resolve();
    },
  };
}
