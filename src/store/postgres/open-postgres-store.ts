import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { EverstepError } from "../../domain/errors.ts";
import { firstConnection, openClient, run } from "./connections.ts";
import { requireDatabaseUrl } from "./database-url.ts";
import { UPKEEP_TUNING, type UpkeepTuning } from "./list-upkeep.ts";
import { MEMBERSHIP_TUNING, type MembershipTuning } from "./membership.ts";
import { migrate } from "./migrations.ts";
import { isOfPooler, pooled, requirePinnedConnections } from "./pinned-connections.ts";
import { PostgresStore } from "./postgres-store.ts";
import { isNotLetIn, toStoreError } from "./store-errors.ts";

type PostgresTuning = MembershipTuning &
  UpkeepTuning & {
    /** Connections for reads and claims, beside one that writes and one that listens. 4 by default. */
    pool_size: number;
  };

type PostgresOptions = {
  url: string;
  tuning?: Partial<PostgresTuning>;
  /** Where it is given, a server that is out of reach is waited for, and this is told why, again and again. */
  waiting?: (why: EverstepError) => void;
};

/** Milliseconds between two attempts, and between two times that it is told. */
const ASK_AGAIN_MS = 500;
const TELL_AGAIN_MS = 30_000;

/** Connects, brings the schema up to date, and joins those who share the database. */
export async function openPostgresStore({ url, tuning, waiting }: PostgresOptions): Promise<PostgresStore> {
  requireDatabaseUrl(url);
  for (let tellAt = 0; ; ) {
    try {
      return await openOnce(url, { ...MEMBERSHIP_TUNING, ...UPKEEP_TUNING, pool_size: 4, ...tuning });
    } catch (error) {
      const told = isOfPooler(error) ? pooled(error) : toStoreError(error);
      if (!waiting || told.code !== "store_unavailable" || isNotLetIn(told.cause)) throw told;
      if (performance.now() >= tellAt) {
        waiting(told);
        tellAt = performance.now() + TELL_AGAIN_MS;
      }
    }
    await wait(ASK_AGAIN_MS);
  }
}

async function openOnce(url: string, tuning: PostgresTuning): Promise<PostgresStore> {
  const client = openClient(url, { max: 1 });
  try {
    await firstConnection(client, url);
    await requirePinnedConnections(client, url);
    await migrate(client);
    const [row] = await run(
      client,
      "select nextval(pg_get_serial_sequence('workers', 'node_no'))::integer as node_no, current_schema() as schema",
    );
    const schema = String(row?.["schema"]);
    // Installations in other schemas of the same database have their own channel and their own locks.
    const lock = createHash("sha256").update(`everstep ${schema}`).digest().readInt32BE(0);
    const store = new PostgresStore(
      url,
      { node_no: Number(row?.["node_no"]), lock, channel: `everstep_${schema}` },
      tuning,
    );
    await store.start();
    return store;
  } finally {
    await client.end({ timeout: 1 }).catch(() => {});
  }
}
