import { EverstepError } from "../../domain/errors.ts";
import type { OwnedSessions } from "../owned-sessions.ts";
import type { OwnedSession } from "../store.ts";
import type { Parameter, Pool } from "./connections.ts";
import type { PostgresReads } from "./postgres-reads.ts";
import { arrayOf, LIVE, toText } from "./tables.ts";

/** Few enough that nobody waits long for the rows. */
const RELEASED_AT_ONCE = 1000;

/**
 * Session ownership in the database.
 *
 * OWNERS-1  A claim whose answer was lost may have taken effect, so that this process owns sessions it does not know of and nobody
 *           runs them. Before the next claim, sessions that are owned but unknown are released.
 * OWNERS-2  `owner_died` is set when a dead owner's session is freed, and cleared by a release and by every commit. A claim only
 *           reads it, so that a claim whose answer was lost does not lose it.
 * OWNERS-3  A process that only lost its connections is declared dead as well, and comes back as the same node: `died_node_no`.
 * OWNERS-4  Whoever frees or claims sessions begins with the running ones, which stand still meanwhile. The others may be many, so
 *           they follow in portions.
 */
export class SessionClaims {
  readonly #pool: Pool;
  readonly #node_no: number;
  readonly #reads: PostgresReads;
  readonly #owned: OwnedSessions;
  #inDoubt = false;

  constructor(pool: Pool, node_no: number, reads: PostgresReads, owned: OwnedSessions) {
    this.#pool = pool;
    this.#node_no = node_no;
    this.#reads = reads;
    this.#owned = owned;
  }

  /** OWNERS-1. This process may own sessions that it does not know of. */
  doubt(): void {
    this.#inDoubt = true;
  }

  async claimFree(worker: string, limit: number): Promise<OwnedSession[]> {
    try {
      return await this.#claimFree(worker, limit);
    } catch (error) {
      this.#inDoubt = true;
      if (!(error instanceof EverstepError) || error.code === "store_closed") throw error;
    }
    // A connection that the server closed is noticed only when it is used; a fresh one tells whether the server is there.
    return this.#claimFree(worker, limit);
  }

  async #claimFree(worker: string, limit: number): Promise<OwnedSession[]> {
    if (this.#inDoubt) await this.#giveUpUnknown(worker); // OWNERS-1
    const rows = await this.#pool.once(
      `with free as materialized (
         select s.session_id from agent_state s where s.node_no is null and s.status in (${LIVE})
           and exists (select 1 from workers where node_no = $1)
         order by (s.status <> 'running'), s.created_at, s.number limit $3 for update skip locked), -- OWNERS-4
       taken as (
         update agent_state s set owner = $2, node_no = $1, epoch = s.epoch + 1 from free f
         where s.session_id = f.session_id returning ${this.#reads.sessionColumns}, s.number)
       select * from taken order by created_at, number`,
      this.#node_no,
      toText(worker),
      limit,
    );
    return this.#own(rows, worker);
  }

  async claim(worker: string, session_id: string): Promise<OwnedSession | null> {
    const rows = await this.#pool.query(
      `update agent_state s set owner = $2, node_no = $1, epoch = s.epoch + case when s.node_no is null then 1 else 0 end
       where s.session_id = $3 and (s.node_no is null or (s.node_no = $1 and s.owner = $2))
         and exists (select 1 from workers where node_no = $1)
       returning ${this.#reads.sessionColumns}`,
      this.#node_no,
      toText(worker),
      toText(session_id),
    );
    return (await this.#own(rows, worker))[0] ?? null;
  }

  /** Loads sessions that this process came to own by claiming their first action. */
  async adopt(worker: string, session_ids: string[]): Promise<void> {
    const rows = await this.#pool.query(
      `select ${this.#reads.sessionColumns} from agent_state s
       where s.session_id = any ($1::text[]) and s.node_no = $2 and s.owner = $3`,
      arrayOf(session_ids.map(toText)),
      this.#node_no,
      toText(worker),
    );
    await this.#own(rows, worker);
  }

  /** May release a session that another call is claiming right now: its first commit is then fenced, and it is claimed again. */
  async #giveUpUnknown(worker: string): Promise<void> {
    await this.#pool.query(
      `update agent_state set owner = null, node_no = null, epoch = epoch + 1, step_started_at = null
       where node_no = $1 and owner = $2 and not session_id = any ($3::text[])`,
      this.#node_no,
      toText(worker),
      arrayOf(this.#owned.ownedBy(worker).map(toText)),
    );
    this.#inDoubt = false;
  }

  /** OWNERS-3. */
  async lastOwnerLives(session_id: string): Promise<boolean> {
    const rows = await this.#pool.query(
      "select 1 from agent_state s join workers w on w.node_no = s.died_node_no where s.session_id = $1",
      toText(session_id),
    );
    return rows.length > 0;
  }

  /** OWNERS-4. These sessions, or all of the worker; `released` is called after each portion. */
  async release(worker: string, session_ids: string[] | undefined, released: () => void): Promise<void> {
    if (session_ids)
      for (let at = 0; at < session_ids.length; at += RELEASED_AT_ONCE) {
        const ids = arrayOf(session_ids.slice(at, at + RELEASED_AT_ONCE).map(toText));
        if ((await this.#releaseSome(worker, "and session_id = any ($3::text[])", ids)) > 0) released();
      }
    else
      for (const only of ["and status = 'running'", ""])
        for (let count = RELEASED_AT_ONCE; count === RELEASED_AT_ONCE; ) {
          count = await this.#releaseSome(worker, only);
          if (count > 0) released();
        }
  }

  async #releaseSome(worker: string, only: string, ...values: Parameter[]): Promise<number> {
    const [row] = await this.#pool.query(
      `with released as (
         update agent_state set owner = null, node_no = null, epoch = epoch + 1, step_started_at = null, owner_died = false -- OWNERS-2
         where session_id = any (array(
           select session_id from agent_state where node_no = $1 and owner = $2 ${only} limit ${RELEASED_AT_ONCE} for update))
         returning 1)
       select count(*) as count from released`,
      this.#node_no,
      toText(worker),
      ...values,
    );
    return Number(row?.["count"]);
  }

  /** Releases everything, because the process is stopping. */
  async releaseAll(): Promise<void> {
    await this.#pool.query(
      `with gone as (delete from workers where node_no = $1),
         writer as (delete from writers where node_no = $1),
         sessions as (update agent_state set owner = null, node_no = null, epoch = epoch + 1, step_started_at = null, owner_died = false where node_no = $1)
       update queue set claimed_by = null where claimed_by = $1`,
      this.#node_no,
    );
  }

  async #own(rows: Record<string, unknown>[], worker: string): Promise<OwnedSession[]> {
    return (await this.#reads.loadSessions(rows)).flatMap(
      ({ session, chain, error_rows, epoch, revision, after_crash }) => {
        this.#owned.add({ session, owner: { worker, epoch, revision }, after_crash }, chain, error_rows);
        // Rows written here while loading are newer than what was read.
        return this.#owned.get(session.session_id) ?? [];
      },
    );
  }
}
