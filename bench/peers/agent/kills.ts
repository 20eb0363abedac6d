import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../../bench.ts";
import { atLeast, atMost, type Figure } from "../../figure.ts";
import { seededRandom } from "../../stats.ts";
import type { Stand } from "../arena.ts";
import { allFigures } from "../compare.ts";
import { agentContenders } from "../contenders.ts";
import type { PeerChild } from "../peer-child.ts";
import { inRounds, type Measured } from "../rounds.ts";
import { buildApps } from "./built-apps.ts";
import { FakeModel } from "./fake-model.ts";
import { sharedNow, TOOL_CALLS } from "./script.ts";

/** Agents running when the process is killed. */
const AGENTS = 4;

/** A run may be split into several shorter ones, each with other moments. */
const KILLS = Number(process.env["BENCH_KILLS"] ?? 100);
const SEED = Number(process.env["BENCH_SEED"] ?? 11);
const QUICK_KILLS = 5;

type Round = {
  kills: number;
  /** Calls made a second time without asking anybody. */
  repeated: number;
  /** Calls that were never made although their agent ended. */
  lost: number;
  questions: number;
};

/** (e) The process is killed while its agents run, and another one replaces it. Servers outside it keep running. */
export async function measureKills({ folder, quick }: BenchContext): Promise<Figure[]> {
  await buildApps(agentContenders());
  await using model = await FakeModel.open();
  const measured = await inRounds(folder, agentContenders(), 1, (stand) =>
    runRound(stand, model, quick ? QUICK_KILLS : KILLS),
  );
  return allFigures(measured, figuresOf);
}

async function runRound(stand: Stand, model: FakeModel, kills: number): Promise<Round> {
  const tool_file = join(stand.folder, "..", "killed-tool-calls");
  await rm(tool_file, { force: true });
  const open = () => stand.openAgents({ model_url: model.url, tool_file });
  const random = seededRandom(SEED);
  const name = `killed-${model.agents}`;
  const batch = (kill: number) => Array.from({ length: AGENTS }, (_, index) => `${name}-${kill}-${index}`);
  let child = await open();
  try {
    const usual_ms = await undisturbed(child, model, batch(0));
    let questions = 0;
    for (let kill = 1; kill <= kills; kill++) {
      const session_ids = batch(kill);
      await begin(child, model, session_ids);
      await wait(random() * usual_ms);
      await child.kill();
      child = await open();
      await child.order({ kind: "begin", session_ids }, "begun");
      questions += (await child.order({ kind: "finish" }, "finished")).questions;
    }
    await child.kill();
    const agents = Array.from({ length: kills + 1 }, (_, kill) => batch(kill)).flat();
    return { kills, questions, ...(await countCalls(tool_file, agents)) };
  } finally {
    await child[Symbol.asyncDispose]();
  }
}

/** Resolves when each agent has called the model, and is therefore known to its runtime. */
async function begin(child: PeerChild, model: FakeModel, session_ids: string[]): Promise<void> {
  await child.order({ kind: "begin", session_ids }, "begun");
  await model.untilAsked(session_ids);
}

/** Milliseconds until the agents end, without a kill. */
async function undisturbed(child: PeerChild, model: FakeModel, session_ids: string[]): Promise<number> {
  await begin(child, model, session_ids);
  const begun = sharedNow();
  await child.order({ kind: "finish" }, "finished");
  return sharedNow() - begun;
}

async function countCalls(tool_file: string, session_ids: string[]): Promise<Pick<Round, "repeated" | "lost">> {
  const made = new Map<string, number>();
  for (const line of (await readFile(tool_file, "utf8")).split("\n"))
    if (line.startsWith("made ")) made.set(line.slice(5), (made.get(line.slice(5)) ?? 0) + 1);
  const counts = session_ids.flatMap((id) =>
    Array.from({ length: TOOL_CALLS }, (_, call) => made.get(`${id} ${call}`) ?? 0),
  );
  return {
    repeated: counts.reduce((sum, count) => sum + Math.max(0, count - 1), 0),
    lost: counts.filter((count) => count === 0).length,
  };
}

function figuresOf({ contender: { name, role }, rounds }: Measured<Round>): Figure[] {
  const [round] = rounds as [Round];
  const ours = role === "everstep";
  const figure = (what: string, measured: number, bar: Figure["bar"]): Figure => ({
    figure: `${name}: ${what}, ${round.kills} kills of ${AGENTS} agents`,
    measured,
    unit: "",
    bar: ours ? bar : null,
  });
  return [
    figure("tool calls made again unasked", round.repeated, atMost(0)),
    figure("tool calls lost", round.lost, atMost(0)),
    // Without a question no kill hit a call, and the figure above would mean nothing.
    figure("calls in doubt that a person was asked about", round.questions, atLeast(1)),
  ];
}
