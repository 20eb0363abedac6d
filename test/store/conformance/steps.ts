import assert from "node:assert/strict";
import type { Session } from "../../../src/domain/session.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { OwnedSession, Page, StepFilter, Store } from "../../../src/store/store.ts";
import { aFork, aSession, failedStep, mustAdvance, mustCommit, mustCreate } from "../fixtures.ts";
import { type Random, randomFor } from "../random.ts";
import { describeClaims, type OpenStore } from "./opened-store.ts";
import { assertPages } from "./pages.ts";

/** The next rows of a session: steps with a growing state, each of `failing` preceded by one or two failed attempts. */
export async function grow(
  store: Store,
  owned: OwnedSession,
  upTo: number,
  failing: number[] = [],
): Promise<{ owned: OwnedSession; rows: Step[] }> {
  const rows: Step[] = [];
  let at = owned;
  while (at.session.iteration < upTo) {
    const iteration = at.session.iteration + 1;
    for (let attempt = 0; attempt < failing.filter((one) => one === iteration).length; attempt++) {
      const failed = failedStep(at);
      await mustCommit(store, failed.batch);
      rows.push(failed.step);
      at = failed.owned;
    }
    const lines = (at.session.context["lines"] ?? []) as string[];
    const line = `${at.session.session_id} ${iteration}`;
    const next = await mustAdvance(store, at, { text: line, state: { lines: [...lines, line] } });
    rows.push(next.step);
    at = next.owned;
  }
  return { owned: at, rows };
}

const byIteration = (rows: Step[]): Step[] => rows.toSorted((a, b) => a.iteration - b.iteration);
const upTo = (rows: Step[], iteration: number): Step[] => rows.filter((row) => row.iteration <= iteration);
const okAt = (rows: Step[], iteration: number): Step =>
  rows.find((row) => row.iteration === iteration && row.status === "ok") as Step;

function matches(step: Step, filter: Omit<StepFilter, keyof Page>): boolean {
  return (
    step.iteration >= (filter.min_iteration ?? 0) &&
    step.iteration <= (filter.max_iteration ?? Number.POSITIVE_INFINITY) &&
    step.iteration > (filter.after_iteration ?? -1) &&
    step.created_at >= (filter.since_created_at ?? "") &&
    step.status === (filter.status ?? step.status)
  );
}

/** Bounds around the given rows: within, at and beyond their ends. */
export function randomFilter(random: Random, rows: Step[]): Omit<StepFilter, keyof Page | "session_id" | "agent_id"> {
  const last = rows.at(-1)?.iteration ?? 0;
  const iteration = (): number => random.below(last + 3);
  return {
    ...(random.chance(0.4) && { min_iteration: iteration() }),
    ...(random.chance(0.4) && { max_iteration: iteration() }),
    ...(random.chance(0.4) && { after_iteration: iteration() - 1 }),
    ...(random.chance(0.3) && { since_created_at: random.pick(rows).created_at }),
    ...(random.chance(0.5) && { status: random.pick(["ok", "error"] as const) }),
  };
}

async function assertFiltered(
  store: Store,
  of: { session_id: string } | { agent_id: string },
  rows: Step[],
  random: Random,
): Promise<void> {
  for (let round = 0; round < 30; round++) {
    const filter = { ...of, ...randomFilter(random, rows) };
    const page = { limit: random.pick([1, 2, 5, 500]), offset: random.chance(0.5) ? 0 : random.below(rows.length + 2) };
    const expected = rows.filter((row) => matches(row, filter)).slice(page.offset, page.offset + page.limit);
    assert.deepEqual(await store.listSteps({ ...filter, ...page }), expected, JSON.stringify({ ...filter, ...page }));
  }
}

export function steps(open: OpenStore): void {
  describeClaims("a list of steps", open, (claim) => {
    for (const failing of [[], [0, 3, 3, 7, 11]]) {
      const kind = failing.length > 0 ? "with failed attempts" : "without a failure";
      claim(`of a session ${kind} returns the right rows for every filter and page`, async (store, t) => {
        const random = randomFor(t);
        const { owned, rows } = await grow(store, await mustCreate(store), 14, failing);
        await grow(store, await mustCreate(store), 3);
        const { session_id } = owned.session;
        return async (reader) => {
          await assertPages((page) => reader.listSteps({ ...page, session_id }), rows);
          await assertPages(
            (page) => reader.listSteps({ ...page, session_id, status: "ok" }),
            rows.filter(({ status }) => status === "ok"),
          );
          await assertFiltered(reader, { session_id }, rows, random);
        };
      });
    }

    claim("of an agent holds the steps of all its sessions, by iteration, then arrival", async (store, t) => {
      const random = randomFor(t);
      const [agent_id, other] = ["agent-many", "agent-man"];
      let rows: Step[] = [];
      const sessions = [
        await mustCreate(store, aSession({ agent_id })),
        await mustCreate(store, aSession({ agent_id })),
        await mustCreate(store, aSession({ agent_id })),
      ];
      await grow(store, await mustCreate(store, aSession({ agent_id: other })), 4);
      for (const last of [3, 4, 9]) {
        for (const [at, owned] of sessions.entries()) {
          const grown = await grow(store, owned, last, at === 1 ? [2, 4] : []);
          rows = [...rows, ...grown.rows];
          sessions[at] = grown.owned;
        }
      }
      const ordered = byIteration(rows);
      return async (reader) => {
        await assertPages((page) => reader.listSteps({ ...page, agent_id }), ordered);
        await assertFiltered(reader, { agent_id }, ordered, random);
        assert.deepEqual(await reader.listSteps({ agent_id: "agent", limit: 10, offset: 0 }), []);
      };
    });
  });

  describeClaims("a fork", open, (claim) => {
    claim("begins with its parent's steps, over two levels, on every page and filter", async (store, t) => {
      const random = randomFor(t);
      const agent_id = "forking";
      const root = await grow(store, await mustCreate(store, aSession({ agent_id })), 9, [2, 5, 6, 9]);
      const child = await mustCreate(store, aFork(root.owned.session, okAt(root.rows, 5)));
      const grown = await grow(store, child, 11, [8]);
      const grandchild = await mustCreate(store, aFork(grown.owned.session, okAt(grown.rows, 8)));
      const further = await grow(store, grandchild, 12, [9, 12]);
      // Parents continue; their steps after the fork do not belong to it.
      const rootLater = await grow(store, root.owned, 15);
      const childLater = await grow(store, grown.owned, 15);

      const ofChild = [...upTo(root.rows, 5), ...grown.rows];
      const ofGrandchild = [...upTo(ofChild, 8), ...further.rows];
      return async (reader) => {
        const lineages: [OwnedSession, Step[]][] = [
          [further.owned, ofGrandchild],
          [rootLater.owned, [...root.rows, ...rootLater.rows]],
        ];
        for (const [owned, rows] of lineages) {
          const { session_id } = owned.session;
          await assertPages((page) => reader.listSteps({ ...page, session_id }), rows);
          await assertFiltered(reader, { session_id }, rows, random);
          assert.deepEqual(await reader.latestStep({ session_id }), rows.at(-1));
          assert.deepEqual(await reader.getSession(session_id), owned.session);
        }
        const parts = [root, grown, further, rootLater, childLater];
        const written = byIteration(parts.flatMap(({ rows }) => rows));
        await assertPages((page) => reader.listSteps({ ...page, agent_id }), written, "each row once for the agent");
        const { session_id } = child.session;
        const shared = await reader.listSteps({ session_id, max_iteration: 11, limit: 500, offset: 0 });
        assert.deepEqual(shared, ofChild);
      };
    });

    claim("of a fork from a step that both share with the first parent", async (store) => {
      const root = await grow(store, await mustCreate(store), 6, [1]);
      const child = await grow(store, await mustCreate(store, aFork(root.owned.session, okAt(root.rows, 4))), 7);
      const early = aFork(child.owned.session, okAt(root.rows, 2));
      const grandchild = await grow(store, await mustCreate(store, early), 5);
      const { session_id } = early;
      const rows = [...upTo(root.rows, 2), ...grandchild.rows];
      return async (reader) => {
        await assertPages((page) => reader.listSteps({ ...page, session_id }), rows);
        for (const offset of [2, 3, 4, 5]) {
          const page = await reader.listSteps({ session_id, status: "ok", limit: 2, offset });
          const expected = rows.filter(({ status }) => status === "ok").slice(offset, offset + 2);
          assert.deepEqual(page, expected, `across the border at offset ${offset}`);
        }
      };
    });

    claim("without its own steps is where its parent was", async (store) => {
      const root = await grow(store, await mustCreate(store), 5, [3, 4]);
      const at = okAt(root.rows, 3);
      const fork: Session = (await mustCreate(store, aFork(root.owned.session, at))).session;
      const { session_id } = fork;
      return async (reader) => {
        assert.deepEqual(await reader.latestStep({ session_id }), at);
        assert.deepEqual((await reader.getSession(session_id))?.context, at.state);
        await assertPages((page) => reader.listSteps({ ...page, session_id }), upTo(root.rows, 3));
      };
    });

    claim("must go on right after the step it was taken from", async (store) => {
      const root = await grow(store, await mustCreate(store), 3);
      const fork = await mustCreate(store, aFork(root.owned.session, okAt(root.rows, 1)));
      const { session_id } = fork.session;
      for (const iteration of [0, 1, 3]) {
        const skewed = { ...fork, session: { ...fork.session, iteration: iteration - 1 } };
        await assert.rejects(mustAdvance(store, skewed), { name: "AssertionError" }, `iteration ${iteration}`);
      }
      const next = await mustAdvance(store, fork);
      return async (reader) => {
        const expected = [...upTo(root.rows, 1), next.step];
        assert.deepEqual(await reader.listSteps({ session_id, limit: 10, offset: 0 }), expected);
      };
    });

    claim("is stored as a fork only if it is at the step it names", async (store) => {
      const root = await grow(store, await mustCreate(store), 3);
      const skewed = aFork(root.owned.session, okAt(root.rows, 1), { iteration: 2 });
      const { session_id } = skewed;
      const outcome = await store.commit({ sessions: [{ kind: "create", session: skewed, worker: null }] });
      assert.deepEqual(outcome, { kind: "fenced", session_id });
      return async (reader) => assert.equal(await reader.getSession(session_id), null);
    });
  });
}
