import { join } from "node:path";
import { Member } from "../../test/cluster/member.ts";
import { freePort } from "../../test/free-port.ts";
import { scratchFolder } from "../../test/store/scratch-folder.ts";
import { fillable, ownDisk } from "./own-disk.ts";
import { ENVIRONMENT, Excuses, type OpenStage } from "./stage.ts";
import { Supervised } from "./supervised.ts";

/** One `everstep serve` on its own disk. */
export const openEmbeddedStage: OpenStage = async (violations, surroundings) => {
  await using resources = new AsyncDisposableStack();
  const scratch = resources.use(await scratchFolder());
  const disk = await ownDisk(scratch.path);
  if (disk) resources.use(disk);
  const port = await freePort();
  const store_url = `lancedb:${join(disk?.folder ?? scratch.path, "data")}`;
  const environment = {
    ...ENVIRONMENT,
    ...surroundings.environment,
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
    disk: disk && fillable(disk, excuses),
    database: null,
    changeCode: () => surroundings.office.changeCode(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
};
