import { join } from "node:path";
import { Member } from "../../test/cluster/member.ts";
import { freePort } from "../../test/free-port.ts";
import { fillUp, makeSpace } from "../../test/store/full-disk.ts";
import { type Mounted, makeDisk, missingForMounts, mountDisk } from "../../test/store/mounts.ts";
import { scratchFolder } from "../../test/store/scratch-folder.ts";
import { ENVIRONMENT, Excuses, type OpenStage, type Stage } from "./stage.ts";
import { Supervised } from "./supervised.ts";

const DISK_BYTES = 2 ** 30;

/** One `everstep serve` on a disk of its own. */
export const openEmbeddedStage: OpenStage = async (violations) => {
  await using resources = new AsyncDisposableStack();
  const scratch = resources.use(await scratchFolder());
  const disk = await ownDisk(scratch.path);
  if (disk) resources.use(disk);
  const port = await freePort();
  const store_url = `lancedb:${join(disk?.folder ?? scratch.path, "data")}`;
  const environment = {
    ...ENVIRONMENT,
    EVERSTEP_STORE: store_url,
    EVERSTEP_PORT: String(port),
    EVERSTEP_WORKSPACE: join(scratch.path, "workspace"),
  };
  const excuses = new Excuses();
  const serve = new Supervised(
    "serve",
    () => new Member("serve", environment, scratch.path),
    excuses.holds,
    violations,
  );
  resources.defer(() => serve.abandon());
  await serve.start();
  const owned = resources.move();
  return {
    urls: [`http://127.0.0.1:${port}`],
    store_url,
    members: [serve],
    disk: disk && diskOf(disk, excuses),
    database: null,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
};

async function ownDisk(folder: string): Promise<Mounted | null> {
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

function diskOf(disk: Mounted, excuses: Excuses): Stage["disk"] {
  let full = Promise.withResolvers<void>();
  return {
    async fill(free_bytes) {
      full = Promise.withResolvers<void>();
      void excuses.during(() => full.promise);
      await fillUp(disk, free_bytes);
    },
    async empty() {
      await makeSpace(disk);
      full.resolve();
    },
  };
}
