import type postgres from "postgres";
import { EverstepError } from "../../domain/errors.ts";
import { openClient } from "./connections.ts";

/** Each round holds one backend of a pooler after the other, so that it must use another one for whoever comes next. */
const ROUNDS = 5;
/** A pooler with a single backend lets the last one wait: that tells it as well, after so many milliseconds. */
const ROUND_MS = 3000;

/**
 * Refuses a pooler that gives each transaction another backend (PgBouncer in transaction or statement mode): advisory locks,
 * LISTEN and prepared statements belong to a backend, and would end up with somebody else.
 *
 * A server that is reached directly names, when it lets us in, the same backend that answers afterwards; then nothing more is
 * asked. A pooler names one of its own. Then it is tried whether one connection keeps its backend while others take theirs.
 */
export async function requirePinnedConnections(client: postgres.Sql, url: string): Promise<void> {
  const [answer, named] = await backendsOf(client);
  if (answer === named) return;
  for (let round = 1; round <= ROUNDS; round++) if (!(await keepsBackend(client, url, round))) throw pooled(null);
}

/** The backend that answered, and the one that was named when the connection was made. */
async function backendsOf(client: postgres.Sql | postgres.TransactionSql): Promise<[number, number]> {
  const rows = await client.unsafe("select pg_backend_pid() as pid");
  return [Number(rows[0]?.["pid"]), rows.state.pid];
}

/** Whether a connection has the same backend before and while so many others have a transaction open. */
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
    // A transaction that is refused: statement mode.
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

/** A pooler that knows only some settings of a session says so when one comes with others. */
export const isOfPooler = (error: unknown): boolean =>
  error instanceof Error && (error as { code?: string }).code === "08P01" && /startup parameter/.test(error.message);

export const pooled = (cause: unknown): EverstepError =>
  new EverstepError(
    "store_pooled",
    cause === null
      ? "a connection pooler gives each transaction another connection to PostgreSQL"
      : `a connection pooler refuses the settings of a session (${(cause as Error).message})`,
    "name the server itself in EVERSTEP_STORE, or a pooler in session mode with ignore_startup_parameters",
    cause ?? undefined,
  );
