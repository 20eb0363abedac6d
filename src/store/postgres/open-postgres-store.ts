import { createHash } from "node:crypto";
import { firstConnection, openClient, run } from "./connections.ts";
import { requireDatabaseUrl } from "./database-url.ts";
import { MEMBERSHIP_TUNING, type MembershipTuning } from "./membership.ts";
import { migrate } from "./migrations.ts";
import { PostgresStore } from "./postgres-store.ts";
import { toStoreError } from "./store-errors.ts";

export type PostgresTuning = MembershipTuning & {
  /** Connections for reads and claims, beside one that writes and one that listens. 4 by default. */
  pool_size: number;
};

/** Connects, brings the schema up to date, and joins those who share the database. */
export async function openPostgresStore(options: {
  url: string;
  tuning?: Partial<PostgresTuning>;
}): Promise<PostgresStore> {
  const { url } = options;
  requireDatabaseUrl(url);
  const tuning = { ...MEMBERSHIP_TUNING, pool_size: 4, ...options.tuning };
  const client = openClient(url, { max: 1 });
  try {
    await firstConnection(client, url);
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
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await client.end({ timeout: 1 }).catch(() => {});
  }
}
