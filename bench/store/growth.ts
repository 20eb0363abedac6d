import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject } from "../../src/domain/json.ts";
import { type EmbeddedStore, openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { randomText, seededRandom } from "../stats.ts";
import { commitOrThrow, createSessions, newLoadSession, nextStep, ownerAfter } from "./load.ts";

const STEPS = 500;
const ADDED = 1_024;

const random = seededRandom(3);
const PIECES = Array.from({ length: STEPS }, () => randomText(random, ADDED));

/** The state after each number of steps, for each way of growing. */
const VARIANTS: Record<string, (steps: number) => JsonObject> = {
  "a text grows": (steps) => ({ text: PIECES.slice(0, steps).join("") }),
  "a list grows": (steps) => ({ list: PIECES.slice(0, steps) }),
  "keys are added": (steps) =>
    Object.fromEntries(PIECES.slice(0, steps).map((piece, index) => [`key ${index}`, piece])),
};

export async function measureGrowth({ folder }: BenchContext): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [index, [name, stateAfter]] of Object.entries(VARIANTS).entries()) {
    figures.push(...(await measureVariant(join(folder, `growth-${index}`), name, stateAfter)));
  }
  return figures;
}

async function measureVariant(
  folder: string,
  name: string,
  stateAfter: (steps: number) => JsonObject,
): Promise<Figure[]> {
  const store = await openEmbeddedStore({ folder });
  let session_id: string;
  let journalled: number[];
  try {
    ({ session_id, journalled } = await grow(store, stateAfter));
    await store.checkpoint();
    await store.compact();
  } finally {
    await store.close();
  }
  const { bytes, allocated, files } = await sizeOf(folder);
  const payload = STEPS * ADDED;
  const early = journalledPerStep(journalled, 50, 100);
  const late = journalledPerStep(journalled, 450, 500);
  const wrong = await wrongStates(folder, session_id, stateAfter);
  return [
    { figure: `${name}: bytes kept per payload byte`, measured: bytes / payload, unit: "", bar: atMost(5) },
    {
      figure: `${name}: blocks of the disk in use per payload byte`,
      measured: allocated / payload,
      unit: "",
      bar: null,
    },
    { figure: `${name}: files`, measured: files, unit: "", bar: null },
    { figure: `${name}: journalled per step, early`, measured: early, unit: "bytes", bar: null },
    { figure: `${name}: journalled per step, late`, measured: late, unit: "bytes", bar: null },
    { figure: `${name}: journalled per step, late / early`, measured: late / early, unit: "x", bar: atMost(1.5) },
    {
      figure: `${name}: bytes journalled per payload byte`,
      measured: (journalled[STEPS] as number) / payload,
      unit: "",
      bar: null,
    },
    { figure: `${name}: states that read back differently`, measured: wrong, unit: "", bar: atMost(0) },
  ];
}

/** Resolves with the bytes written to the journal after each number of steps. */
async function grow(store: EmbeddedStore, stateAfter: (steps: number) => JsonObject) {
  const load = newLoadSession();
  await createSessions(store, [load]);
  const start = (await store.stats()).journal_bytes;
  const journalled = [0];
  for (let steps = 1; steps <= STEPS; steps++) {
    // No text, and no result in the session, so that only the state is measured.
    const step = { ...nextStep(load, [], stateAfter(steps)), text: null, data: null };
    load.session = { ...load.session, result: null };
    const owner = ownerAfter(load.session);
    await commitOrThrow(store, { steps: [step], sessions: [{ kind: "update", session: load.session, owner }] });
    journalled.push((await store.stats()).journal_bytes - start);
  }
  return { session_id: load.session.session_id, journalled };
}

const journalledPerStep = (journalled: readonly number[], from: number, to: number): number =>
  ((journalled[to] as number) - (journalled[from] as number)) / (to - from);

async function sizeOf(folder: string): Promise<{ bytes: number; allocated: number; files: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const stats = await Promise.all(paths.map((path) => stat(path)));
  const sum = (sizes: number[]): number => sizes.reduce((total, size) => total + size, 0);
  return {
    bytes: sum(stats.map((file) => file.size)),
    allocated: sum(stats.map((file) => file.blocks * 512)),
    files: paths.length,
  };
}

async function wrongStates(
  folder: string,
  session_id: string,
  stateAfter: (steps: number) => JsonObject,
): Promise<number> {
  const store = await openEmbeddedStore({ folder });
  try {
    const same = (read: JsonObject | undefined, steps: number): boolean =>
      JSON.stringify(read) === JSON.stringify(stateAfter(steps));
    let wrong = same((await store.getSession(session_id))?.context, STEPS) ? 0 : 1;
    for (let offset = 0; offset < STEPS; offset += 100) {
      const page = await store.listSteps({ session_id, limit: 100, offset });
      for (let index = 0; index < 100; index++) if (!same(page[index]?.state, offset + index + 1)) wrong++;
    }
    return wrong;
  } finally {
    await store.close();
  }
}
