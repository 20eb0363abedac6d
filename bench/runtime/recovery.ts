import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { seededRandom, summarize } from "../stats.ts";
import { Child, sharedClock } from "./child.ts";
import { type Lives, readLives } from "./recovery-lives.ts";
import type { RunningMessage } from "./recovery-process.ts";

const SESSIONS = 50;

/** Milliseconds until the last session runs again. */
type Round = Lives & { since_start: number; since_open: number; first_start: number };

export async function measureRecovery({ folder, quick }: BenchContext): Promise<Figure[]> {
  const random = seededRandom(11);
  const rounds: Round[] = [];
  for (let index = 0; index < (quick ? 2 : 8); index++)
    rounds.push(await killAndRestart(join(folder, `recovery-${index}`), 500 + random() * 2_000));
  return recoveryFigures(rounds);
}

async function killAndRestart(folder: string, kill_after_ms: number): Promise<Round> {
  await mkdir(folder);
  const begun = sharedClock();
  const first = await live(folder, 1, async (child) => {
    await wait(kill_after_ms);
    await child.kill();
  });
  const restarted = sharedClock();
  const second = await live(folder, 2, async (child) => {
    // If the second process repeated a step of the first, it would do so within the time of a few steps.
    await wait(300);
    await child.stop();
  });
  return {
    ...(await readLives(folder, first.sessions)),
    first_start: first.running_at - begun,
    since_start: second.running_at - restarted,
    since_open: second.running_at - second.store_open_at,
  };
}

async function live(folder: string, life: number, end: (child: Child<RunningMessage>) => Promise<void>) {
  await using child = new Child<RunningMessage>("recovery-process.ts", [folder, String(life), String(SESSIONS)]);
  const running = await child.next();
  await end(child);
  return running;
}

function recoveryFigures(rounds: readonly Round[]): Figure[] {
  const name = (what: string) => `${SESSIONS} sessions, ${rounds.length} kills: ${what}`;
  const time = (what: string, key: "since_start" | "since_open" | "first_start"): Figure[] => {
    const { p50, max } = summarize(rounds.map((round) => round[key]));
    return [
      { figure: name(`${what}, median`), measured: p50, unit: "ms", bar: null },
      { figure: name(`${what}, longest`), measured: max, unit: "ms", bar: null },
    ];
  };
  const total = (what: string, key: keyof Lives, mustBeNone: boolean): Figure => ({
    figure: name(what),
    measured: rounds.reduce((sum, round) => sum + round[key], 0),
    unit: "",
    bar: mustBeNone ? atMost(0) : null,
  });
  return [
    ...time("process start to the last session running again", "since_start"),
    ...time("store open to the last session running again", "since_open"),
    ...time("process start to all sessions created and running, before the kill", "first_start"),
    total("steps committed before", "committed_before", false),
    total("steps committed after", "committed_after", false),
    total("sessions lost", "sessions_lost", true),
    total("acknowledged steps lost", "acknowledged_lost", true),
    total("gaps and repeats in the rows", "wrong_rows", true),
    total("committed steps run again", "committed_again", true),
    total("steps run before and again because they were not committed", "uncommitted_again", false),
  ];
}
