import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Member, type Role } from "../../test/cluster/member.ts";
import { freePort } from "../../test/free-port.ts";
import { administer, startPostgres } from "../../test/postgres-process.ts";
import { scratchFolder } from "../../test/store/scratch-folder.ts";
import { ENVIRONMENT, Excuses, type OpenStage } from "./stage.ts";
import { Supervised } from "./supervised.ts";

const ROLES: Role[] = ["server", "server", "worker", "worker", "worker"];
const CUT = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'everstep'";

/** Two servers and three workers on one PostgreSQL. */
export const openSharedStage: OpenStage = async (violations) => {
  await using resources = new AsyncDisposableStack();
  const scratch = resources.use(await scratchFolder());
  const database = await startPostgres();
  resources.defer(() => database.stop());
  const excuses = new Excuses();
  const urls: string[] = [];
  const members: Supervised[] = [];
  for (const [index, role] of ROLES.entries()) {
    const port = await freePort();
    if (role === "server") urls.push(`http://127.0.0.1:${port}`);
    const environment = {
      ...ENVIRONMENT,
      EVERSTEP_STORE: database.url,
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
    disk: null,
    database: {
      restart: (down_ms) => excuses.during(() => database.restart(() => wait(down_ms))),
      cutConnections: () => excuses.during(() => administer(database.url, CUT)),
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
};
