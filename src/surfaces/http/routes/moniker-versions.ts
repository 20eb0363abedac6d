import { z } from "zod";
import { idSchema, timeSchema } from "../../../domain/ids.ts";
import type { SessionSummary } from "../../../domain/session-summary.ts";
import type { Step } from "../../../domain/step.ts";
import type { Store } from "../../../store/store.ts";
import type { Routes } from "../context.ts";
import { unknown } from "../problem.ts";
import { answers } from "../schemas.ts";

/** Sessions that are looked at. */
const MOST_SESSIONS = 50;
/** Steps that one request reads; the next one continues where it stopped. */
const MOST_STEPS = 20_000;
const STEPS_AT_ONCE = 200;
/** Sessions whose steps are remembered as read. */
const MOST_REMEMBERED = 1000;

const versionsSchema = z.object({
  looked_at: z.int().min(0).describe(`Sessions examined: the ${MOST_SESSIONS} most recently updated, or all.`),
  total: z.int().min(0).describe("Sessions of the moniker."),
  is_complete: z
    .boolean()
    .describe(
      `False while some of their steps are not read yet: a request reads ${MOST_STEPS} of them, the next one goes on.`,
    ),
  versions: z
    .array(
      z.object({
        version: z.string().nullable().describe("Null: from before versions were recorded."),
        is_current: z.boolean(),
        sessions: z.int().min(0),
        first_step_at: timeSchema.nullable(),
        last_step_at: timeSchema.nullable(),
        latest_session_id: idSchema.nullable(),
      }),
    )
    .describe("The current one first, then those that were used last."),
});
type Version = z.infer<typeof versionsSchema>["versions"][number];

export const monikerVersionRoutes: Routes = (app, { store, catalog }) => {
  const scan = new VersionScan(store);
  app.get(
    "/api/monikers/:name/versions",
    {
      schema: {
        tags: ["system"],
        operationId: "listMonikerVersions",
        summary: "The versions of a moniker that sessions used",
        params: z.object({ name: z.string().min(1).max(200) }),
        response: answers(200, versionsSchema, 400, 404),
      },
    },
    async ({ params: { name } }) => {
      const moniker = catalog.get(name);
      if (!moniker) throw unknown("moniker");
      const { sessions, total } = await store.summarizeSessions({
        moniker: name,
        limit: MOST_SESSIONS,
        offset: 0,
        sort: "updated_at",
      });
      const { uses, is_complete } = await scan.usesIn(sessions);
      return { looked_at: sessions.length, total, is_complete, versions: versionsIn(uses, moniker.version ?? null) };
    },
  );
};

/** A session's use of a version. */
type Use = { session_id: string; version: string | null; first_step_at: string; last_step_at: string };
type ReadSession = { next_iteration: number; uses: Map<string | null, Use> };

/** Reads the steps of sessions for the versions that ran them, each step once: a committed step never changes. */
class VersionScan {
  readonly #store: Store;
  readonly #sessions = new Map<string, ReadSession>();

  constructor(store: Store) {
    this.#store = store;
  }

  async usesIn(sessions: readonly SessionSummary[]): Promise<{ uses: Use[]; is_complete: boolean }> {
    const uses: Use[] = [];
    let left = MOST_STEPS;
    for (const session of sessions) {
      const read = this.#progressOf(session);
      left -= await this.#readOn(session.session_id, read, left);
      uses.push(...read.uses.values());
      if (left > 0) continue;
      // What the session runs now is listed before all of it is read.
      const latest = await this.#store.latestStep({ session_id: session.session_id });
      if (latest) uses.push(useOf(latest));
    }
    return { uses, is_complete: left > 0 };
  }

  #progressOf({ session_id, parent_iteration }: SessionSummary): ReadSession {
    const cached = this.#sessions.get(session_id);
    if (cached) return cached;
    // A fork's earlier steps are its parent's.
    const begun: ReadSession = { next_iteration: (parent_iteration ?? -1) + 1, uses: new Map() };
    this.#sessions.set(session_id, begun);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MOST_REMEMBERED && oldest !== undefined) this.#sessions.delete(oldest);
    return begun;
  }

  /** Answers how many steps it read. */
  async #readOn(session_id: string, read: ReadSession, most: number): Promise<number> {
    let count = 0;
    for (let offset = 0; count < most; ) {
      const range = { session_id, min_iteration: read.next_iteration, limit: STEPS_AT_ONCE, offset };
      const steps = await this.#store.listSteps(range);
      count += steps.length;
      // Failed attempts do not use up their iteration, so a page of them is passed over by its length.
      offset += steps.length;
      for (const step of steps) {
        addUse(read.uses, useOf(step));
        if (step.status !== "ok") continue;
        read.next_iteration = step.iteration + 1;
        offset = 0;
      }
      if (steps.length < STEPS_AT_ONCE) break;
    }
    return count;
  }
}

const useOf = ({ session_id, moniker_version, created_at }: Step): Use => ({
  session_id,
  version: moniker_version,
  first_step_at: created_at,
  last_step_at: created_at,
});

function addUse(uses: Map<string | null, Use>, use: Use): void {
  const previous = uses.get(use.version) ?? use;
  const first_step_at = use.first_step_at < previous.first_step_at ? use.first_step_at : previous.first_step_at;
  const last_step_at = use.last_step_at > previous.last_step_at ? use.last_step_at : previous.last_step_at;
  uses.set(use.version, { ...previous, first_step_at, last_step_at });
}

function versionsIn(uses: readonly Use[], current: string | null): Version[] {
  const versions = [...Map.groupBy(uses, ({ version }) => version)].map(([version, members]): Version => {
    const latest = members.reduce((last, use) => (use.last_step_at > last.last_step_at ? use : last));
    return {
      version,
      is_current: version === current,
      sessions: new Set(members.map(({ session_id }) => session_id)).size,
      first_step_at: members.map(({ first_step_at }) => first_step_at).reduce((a, b) => (a < b ? a : b)),
      last_step_at: latest.last_step_at,
      latest_session_id: latest.session_id,
    };
  });
  const unused = { sessions: 0, first_step_at: null, last_step_at: null, latest_session_id: null };
  if (!versions.some(({ is_current }) => is_current)) versions.push({ version: current, is_current: true, ...unused });
  return versions.sort(
    (one, other) =>
      Number(other.is_current) - Number(one.is_current) ||
      ((one.last_step_at ?? "") < (other.last_step_at ?? "") ? 1 : -1),
  );
}
