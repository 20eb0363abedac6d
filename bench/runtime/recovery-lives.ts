import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isObject } from "../../src/domain/json.ts";
import type { Step } from "../../src/domain/step.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { Store } from "../../src/store/store.ts";

/** What two processes running the same sessions left behind, in numbers of sessions and steps. */
export type Lives = {
  committed_before: number;
  committed_after: number;
  sessions_lost: number;
  acknowledged_lost: number;
  wrong_rows: number;
  committed_again: number;
  uncommitted_again: number;
};

/** Compares the rows with the files that the processes wrote outside the store. */
export async function readLives(folder: string, session_ids: readonly string[]): Promise<Lives> {
  const lives: Lives = {
    committed_before: 0,
    committed_after: 0,
    sessions_lost: 0,
    acknowledged_lost: 0,
    wrong_rows: 0,
    committed_again: 0,
    uncommitted_again: 0,
  };
  /** Which process, first or second, committed each step, by `session iteration`. */
  const committedIn = new Map<string, number>();
  const store = await openEmbeddedStore({ folder: join(folder, "store") });
  try {
    for (const session_id of session_ids) {
      const steps = await allSteps(store, session_id);
      if (!steps.some((step) => lifeOf(step) === 2)) lives.sessions_lost += 1;
      lives.wrong_rows += steps.filter(({ iteration }, index) => iteration !== index).length;
      for (const step of steps) committedIn.set(`${session_id} ${step.iteration}`, lifeOf(step));
    }
  } finally {
    await store.close();
  }
  for (const life of committedIn.values()) lives[life === 1 ? "committed_before" : "committed_after"] += 1;
  for (const step of await linesOf(join(folder, "acknowledged.log")))
    if (!committedIn.has(step)) lives.acknowledged_lost += 1;
  const executed = await linesOf(join(folder, "executed.log"));
  const inFirst = new Set(executed.filter((line) => line.startsWith("1 ")).map((line) => line.slice(2)));
  for (const step of executed.filter((line) => line.startsWith("2 ")).map((line) => line.slice(2))) {
    if (committedIn.get(step) === 1) lives.committed_again += 1;
    else if (inFirst.has(step)) lives.uncommitted_again += 1;
  }
  return lives;
}

const lifeOf = ({ data }: Step): number => (isObject(data) ? Number(data["life"]) : Number.NaN);

async function allSteps(store: Store, session_id: string): Promise<Step[]> {
  const steps: Step[] = [];
  for (;;) {
    const page = await store.listSteps({ session_id, limit: 500, offset: steps.length });
    steps.push(...page);
    if (page.length < 500) return steps;
  }
}

const linesOf = async (path: string): Promise<string[]> => (await readFile(path, "utf8")).split("\n").filter(Boolean);
