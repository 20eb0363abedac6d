import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { runInFreshProcess } from "./fresh-process.ts";
import type { FillAnswer } from "./reopen-fill-process.ts";
import type { ReopenAnswer } from "./reopen-process.ts";

export async function measureReopen({ folder }: BenchContext): Promise<Figure[]> {
  const sessions = 10_000;
  const closed = await reopenAfter(join(folder, "reopen-closed"), sessions, "close");
  const killed = await reopenAfter(join(folder, "reopen-killed"), sessions, "kill");
  return [...reopenFigures("a shutdown", sessions, closed), ...reopenFigures("SIGKILL", sessions, killed)];
}

async function reopenAfter(folder: string, sessions: number, end: "close" | "kill"): Promise<ReopenAnswer> {
  const ending = end === "kill" ? "killed" : "by itself";
  await runInFreshProcess<FillAnswer>("reopen-fill-process.ts", [folder, String(sessions), end], ending);
  return runInFreshProcess<ReopenAnswer>("reopen-process.ts", [folder], "by itself");
}

function reopenFigures(end: string, sessions: number, { opened, claimed, sessions_claimed }: ReopenAnswer): Figure[] {
  if (sessions_claimed !== sessions)
    throw new Error(`${sessions_claimed} of ${sessions} live sessions came back after ${end}`);
  const count = sessions.toLocaleString("en-US");
  return [
    { figure: `after ${end}: process start to store open`, measured: opened / 1_000, unit: "s", bar: null },
    {
      figure: `after ${end}: process start to ${count} sessions claimed`,
      measured: claimed / 1_000,
      unit: "s",
      bar: below(3),
    },
  ];
}
