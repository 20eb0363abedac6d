import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BenchContext } from "../../bench.ts";
import { below, type Figure } from "../../figure.ts";
import { summarize } from "../../stats.ts";
import type { Stand } from "../arena.ts";
import { allFigures, best, spread } from "../compare.ts";
import { agentContenders } from "../contenders.ts";
import type { PeerChild } from "../peer-child.ts";
import { drawAgent } from "../pictures.ts";
import { inRounds, type Measured } from "../rounds.ts";
import { buildApps } from "./built-apps.ts";
import { FakeModel } from "./fake-model.ts";
import { type Interval, timeBeside } from "./overhead.ts";
import { FIRST_WORD_MS, MODEL_CALLS, TOOL_CALLS } from "./script.ts";

const CALLS = MODEL_CALLS + TOOL_CALLS;
/**
 * The same agents run, several at a time, before one is measured, equally long for each contender: such programs run for days.
 */
const WARM_UP_MS = 3_000;
const WARM_UP_AGENTS = 8;
const ASKED = 5;
const STREAMED = 3;

/**
 * Milliseconds for each agent: per call, excluding the model's and the tool's own time; in total; and until the caller has the
 * first text.
 */
type Round = { beside: number[]; whole: number[]; first_text: number[] };

/** (e) One agent after another, each with 10 model calls and 20 tool calls. */
export async function measureAgent({ folder, quick }: BenchContext): Promise<Figure[]> {
  await buildApps(agentContenders());
  await using model = await FakeModel.open();
  const measured = await inRounds(folder, agentContenders(), quick ? 1 : 3, (stand) => runRound(stand, model));
  if (!quick) await drawAgent(measured.map(({ contender, rounds }) => ({ contender, values: rounds.map(besideOf) })));
  const peer = best(measured, "peer", besideOf, Math.min);
  return allFigures(measured, (one) => figuresOf(one, peer));
}

const besideOf = ({ beside }: Round): number => summarize(beside).p50;

async function runRound(stand: Stand, model: FakeModel): Promise<Round> {
  const tool_file = join(stand.folder, "..", "tool-calls");
  await using child = await stand.openAgents({ model_url: model.url, tool_file });
  const name = `agent-${model.agents}`;
  const round: Round = { beside: [], whole: [], first_text: [] };
  const warm = performance.now() + WARM_UP_MS;
  for (let batch = 0; performance.now() < warm; batch++) {
    const session_ids = Array.from({ length: WARM_UP_AGENTS }, (_, index) => `${name}-warm-${batch}-${index}`);
    await child.order({ kind: "begin", session_ids }, "begun");
    await child.order({ kind: "finish" }, "finished");
  }
  for (let index = 0; index < ASKED + STREAMED; index++) {
    const session_id = `${name}-${index}`;
    const streamed = index >= ASKED;
    const ran = await askOne(child, model, { session_id, streamed, tool_file });
    if (streamed) round.first_text.push(ran.first_text);
    else {
      round.beside.push(ran.beside / CALLS);
      round.whole.push(ran.whole);
    }
  }
  await child.close();
  return round;
}

async function askOne(
  child: PeerChild,
  model: FakeModel,
  { session_id, streamed, tool_file }: { session_id: string; streamed: boolean; tool_file: string },
) {
  const { asked, first_text, answered } = await child.order({ kind: "ask", session_id, streamed }, "answered");
  const thought = model.calls.get(session_id) ?? [];
  const acted = await toolCalls(tool_file, session_id);
  if (thought.length !== MODEL_CALLS || acted.length !== TOOL_CALLS)
    throw new Error(`${session_id} made ${thought.length} model calls and ${acted.length} tool calls`);
  const beside = timeBeside(asked, answered, [...thought, ...acted]);
  return { beside, whole: answered - asked, first_text: first_text === null ? Number.NaN : first_text - asked };
}

async function toolCalls(tool_file: string, session_id: string): Promise<Interval[]> {
  return (await readFile(tool_file, "utf8"))
    .split("\n")
    .filter((line) => line.startsWith("took ") && line.endsWith(` ${session_id}`))
    .map((line) => {
      const [, begun, ended] = line.split(" ");
      return { begun: Number(begun), ended: Number(ended) };
    });
}

function figuresOf({ contender: { name, role }, rounds }: Measured<Round>, peer: number): Figure[] {
  const beside = spread(rounds.map(besideOf));
  const figure = (what: string, measured: number): Figure => ({
    figure: `${name}: ${what}`,
    measured,
    unit: "ms",
    bar: null,
  });
  const first = summarize(rounds.flatMap(({ first_text }) => first_text)).p50;
  return [
    {
      ...figure(
        `per call beside the model's and the tool's own time, p50, median of ${rounds.length} rounds`,
        beside.median,
      ),
      bar: role === "everstep" ? below(peer) : null,
    },
    figure("per call beside the model's and the tool's own time, p50, best round", beside.least),
    figure("per call beside the model's and the tool's own time, p50, worst round", beside.most),
    figure(`an agent of ${CALLS} calls, p50`, summarize(rounds.flatMap(({ whole }) => whole)).p50),
    figure(`from asking to the first text at the caller, p50, of which the model takes ${FIRST_WORD_MS} ms`, first),
  ];
}
