import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { FaultyProxy } from "../../test/cluster/faulty-proxy.ts";
import { Member, type Role } from "../../test/cluster/member.ts";
import { freePort } from "../../test/free-port.ts";
import { startPostgres } from "../../test/postgres-process.ts";
import type { Mounted } from "../../test/store/mounts.ts";
import { scratchFolder } from "../../test/store/scratch-folder.ts";
import { breakDatabase } from "./broken-database.ts";
import { fillable, ownDisk } from "./own-disk.ts";
import { ENVIRONMENT, Excuses, type OpenStage } from "./stage.ts";
import { Supervised } from "./supervised.ts";

const ROLES: Role[] = ["server", "server", "worker", "worker", "worker"];

/** Two servers and three workers on one PostgreSQL. */
export const openSharedStage: OpenStage = async (violations, surroundings) => {
  await using resources = new AsyncDisposableStack();
  const scratch = resources.use(await scratchFolder());
  const disk = await ownDisk(scratch.path);
  if (disk) resources.use(disk);
  const database = await startPostgres(await placeOn(disk, scratch.path));
  resources.defer(() => database.stop());
  const { proxy, url } = await FaultyProxy.before(database.url);
  resources.use(proxy);
  const excuses = new Excuses();
  const urls: string[] = [];
  const members: Supervised[] = [];
  for (const [index, role] of ROLES.entries()) {
    const port = await freePort();
    if (role === "server") urls.push(`http://127.0.0.1:${port}`);
    const environment = {
      ...ENVIRONMENT,
      ...surroundings.environment,
      EVERSTEP_STORE: url,
      EVERSTEP_PORT: String(port),
      EVERSTEP_WORKSPACE: join(scratch.path, "workspace"),
    };
    const start = (): Member => new Member(role, environment, scratch.path);
    const member = new Supervised(`${role} ${index}`, start, excuses.holds, violations);
    resources.defer(() => member.abandon());
    members.push(member);
  }
  await Promise.all(members.map((member) => member.start()));
  const owned = resources.move();
  return {
    urls,
    store_url: database.url,
    members,
    // A database that could not write its log may have ended; an operator would restart it.
    disk: disk && fillable(disk, excuses, () => database.restart()),
    database: { break: (fault) => excuses.during(() => breakDatabase(database, proxy, fault)) },
    changeCode: () => surroundings.office.changeCode(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
};

/** PostgreSQL runs as its own user, who needs access to its folder. */
async function placeOn(
  disk: Mounted | null,
  scratch: string,
): Promise<{ folder: string; flags: string[] } | undefined> {
  if (!disk) return undefined;
  await chmod(scratch, 0o755);
  const folder = join(disk.folder, "database");
  await mkdir(folder);
  return { folder, flags: ["max_wal_size=64MB", "min_wal_size=32MB"] };
}
