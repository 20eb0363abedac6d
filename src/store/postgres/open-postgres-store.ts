import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type postgres from "postgres";
import { EverstepError } from "../../domain/errors.ts";
import { SCHEMA, type Schema } from "../schema.ts";
import { firstConnection, isNotLetIn, openClient, run, toStoreError } from "./connections.ts";
import { MEMBERSHIP_TUNING, type MembershipTuning } from "./membership.ts";
import { type AddedMigration, migrate } from "./migrations.ts";
import { PostgresStore } from "./postgres-store.ts";
import { UPKEEP_TUNING, type UpkeepTuning } from "./session-lists.ts";

type PostgresTuning = MembershipTuning &
  UpkeepTuning & {
    /** Connections for reads and claims. Besides them two write, one listens and one is for the heartbeat. 4 by default. */
    pool_size: number;
  };

type PostgresOptions = {
  url: string;
  tuning?: Partial<PostgresTuning>;
  /** A schema other than this version's, and the migrations that lead to it. */
  schema?: Schema;
  migrations?: readonly AddedMigration[];
  /** If given, opening waits for a server that is out of reach, and this is called with the reason from time to time. */
  waiting?: (why: EverstepError) => void;
};

/** Milliseconds between two attempts, and between two reports of why they fail. */
const RETRY_MS = 500;
const REPORT_AGAIN_MS = 30_000;

/** Connects, migrates, and joins the processes that share the database. */
export async function openPostgresStore(options: PostgresOptions): Promise<PostgresStore> {
  const { url, waiting } = options;
  requireDatabaseUrl(url);
  for (let reportAt = 0; ; ) {
    try {
      return await openOnce(options);
    } catch (error) {
      const reason = isOfPooler(error) ? pooled(error) : toStoreError(error);
      if (!waiting || reason.code !== "store_unavailable" || isNotLetIn(reason.cause)) throw reason;
      if (performance.now() >= reportAt) {
        waiting(reason);
        reportAt = performance.now() + REPORT_AGAIN_MS;
      }
    }
    await wait(RETRY_MS);
  }
}

async function openOnce({ url, tuning, schema = SCHEMA, migrations = [] }: PostgresOptions): Promise<PostgresStore> {
  const client = openClient(url, { max: 1 });
  try {
    await firstConnection(client, url);
    await requirePinnedConnections(client, url);
    await migrate(client, schema, migrations);
    const [row] = await run(
      client,
      "select nextval(pg_get_serial_sequence('workers', 'node_no'))::integer as node_no, current_schema() as namespace",
    );
    const namespace = String(row?.["namespace"]);
    // Installations in other schemas of the same database have their own channel and locks.
    const lock = createHash("sha256").update(`everstep ${namespace}`).digest().readInt32BE(0);
    const store = new PostgresStore(
      url,
      { node_no: Number(row?.["node_no"]), lock, channel: `everstep_${namespace}` },
      schema,
      { ...MEMBERSHIP_TUNING, ...UPKEEP_TUNING, pool_size: 4, ...tuning },
    );
    await store.start();
    return store;
  } finally {
    await client.end({ timeout: 1 }).catch(() => {});
  }
}

/**
 * Refuses a URL that the driver would misread, or reject with the URL in its error. The message contains no part of the URL: the
 * problem is usually in the password.
 */
function requireDatabaseUrl(url: string): void {
  const problem = problemOf(url);
  if (problem === null) return;
  throw new EverstepError(
    "config_invalid",
    `EVERSTEP_STORE is not a URL of a database: ${problem}`,
    "write postgres://USER:PASSWORD@HOST/DATABASE, with every special character of the password percent-encoded (/ is %2F, @ is %40, # is %23, ? is %3F, % is %25)",
  );
}

function problemOf(url: string): string | null {
  if (/[\s\p{Cc}]/u.test(url)) return "it has spaces or control characters";
  const rest = url.slice(url.indexOf("://") + 3);
  const authority = rest.slice(0, rest.search(/[/?#]|$/));
  const [, ...afterAt] = authority.split("@");
  if (afterAt.length === 0 && rest.includes("@")) return "something that must be percent-encoded comes before the @";
  // The driver looks for several hosts after the first @, not the last.
  if (afterAt.length > 1 && authority.includes(",")) return "an @ in the password must be percent-encoded";
  try {
    decodeURIComponent(authority);
  } catch {
    return "a % in it begins no percent-encoded character";
  }
  const hosts = afterAt.at(-1) ?? authority;
  const isUrl = hosts.split(",").every((host) => URL.canParse(url.replace(hosts, () => host)));
  return isUrl ? null : "the host, the port or what stands before them cannot be read";
}

/** Each round keeps one more backend of a pooler busy, so that it has to use another one for us. */
const ROUNDS = 5;
/** A pooler without a free backend lets us wait; after this many milliseconds that gives it away as well. */
const ROUND_MS = 3000;

/**
 * Refuses a pooler that gives each transaction another backend (PgBouncer in transaction or statement mode): advisory locks,
 * LISTEN and prepared statements belong to a backend, and would end up with somebody else.
 *
 * A server that is reached directly answers from the backend that it named when the connection was made; then we are done. A pooler
 * names one of its own; then we test whether a connection keeps its backend while others use theirs.
 */
async function requirePinnedConnections(client: postgres.Sql, url: string): Promise<void> {
  const [answer, named] = await backendsOf(client);
  if (answer === named) return;
  for (let round = 1; round <= ROUNDS; round++) if (!(await keepsBackend(client, url, round))) throw pooled(null);
}

/** The backend that answers, and the one named when the connection was made. */
async function backendsOf(client: postgres.Sql | postgres.TransactionSql): Promise<[number, number]> {
  const rows = await client.unsafe("select pg_backend_pid() as pid");
  return [Number(rows[0]?.["pid"]), rows.state.pid];
}

/** Whether a connection keeps its backend while this many others have a transaction open. */
async function keepsBackend(client: postgres.Sql, url: string, holders: number): Promise<boolean> {
  const others = openClient(url, { max: holders });
  const compared = Promise.withResolvers<boolean>();
  try {
    const [mine] = await backendsOf(client);
    const held = Array.from({ length: holders }, () => Promise.withResolvers<number>());
    const over = Promise.all(
      held.map((one) =>
        others.begin(async (transaction) => {
          one.resolve((await backendsOf(transaction))[0]);
          await compared.promise.catch(() => {});
        }),
      ),
    );
    const judged = (async () => {
      const theirs = await Promise.all(held.map(({ promise }) => promise));
      if (theirs.includes(mine)) return false;
      const [again] = await backendsOf(client);
      return again === mine;
    })();
    const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), ROUND_MS).unref());
    // Statement mode refuses transactions.
    const refused = over.then(
      () => true,
      () => false,
    );
    return await Promise.race([judged.catch(() => false), refused, late]);
  } finally {
    compared.resolve(true);
    await others.end({ timeout: 1 }).catch(() => {});
  }
}

/** A pooler that does not accept our session settings says so. */
const isOfPooler = (error: unknown): boolean =>
  error instanceof Error && (error as { code?: string }).code === "08P01" && /startup parameter/.test(error.message);

const pooled = (cause: unknown): EverstepError =>
  new EverstepError(
    "store_pooled",
    cause === null
      ? "a connection pooler gives each transaction another connection to PostgreSQL"
      : `a connection pooler refuses the settings of a session (${(cause as Error).message})`,
    "name the server itself in EVERSTEP_STORE, or a pooler in session mode with ignore_startup_parameters",
    cause ?? undefined,
  );
