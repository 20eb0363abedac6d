import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import type { Figure } from "../figure.ts";
import { Child } from "../runtime/child.ts";
import type { BareMessage } from "./bare-process.ts";
import { type EverstepProcess, startEverstep } from "./everstep-process.ts";
import { writeHistory } from "./history.ts";
import { type KeptConnection, openConnections } from "./kept-connection.ts";
import { type LoneCommits, openLoneCommits } from "./lone-commits.ts";
import { commitFigures, pairFigures } from "./request-figures.ts";
import { CONNECTION_COUNTS, prepareKinds, type RequestKind } from "./request-kinds.ts";
import { type Pair, RequestLoad } from "./request-load.ts";

const COMMITS_IN_BLOCK = 25;
const WARM_UP_ROUNDS = 5;

/** The server, the bare routes and the store take turns, so that a busy moment of the machine affects all of them. */
export async function measureRequests({ folder, quick }: BenchContext): Promise<Figure[]> {
  const store = join(folder, "requests");
  const history = await writeHistory(store);
  await using server = await startEverstep(store);
  await using bare = new Child<BareMessage>("../server/bare-process.ts", []);
  await using lone = await openLoneCommits(join(folder, "requests-lone"));
  const most = Math.max(...CONNECTION_COUNTS);
  using toEverstep = await openConnections(server.port, most);
  using toBare = await openConnections((await bare.next()).port, most);
  const pairs = pairUp(await prepareKinds(server, history), toEverstep, toBare);
  await runRounds(pairs, server, lone, WARM_UP_ROUNDS);
  for (const pair of pairs) forget(pair);
  const commits = await runRounds(pairs, server, lone, quick ? 12 : 60);
  return [...pairs.flatMap(pairFigures), ...commitFigures(pairs, commits)];
}

function pairUp(
  kinds: readonly RequestKind[],
  toEverstep: readonly KeptConnection[],
  toBare: readonly KeptConnection[],
): Pair[] {
  return kinds.flatMap((kind) =>
    CONNECTION_COUNTS.map((count) => ({
      kind,
      count,
      everstep: new RequestLoad(kind, toEverstep, count),
      bare: new RequestLoad(kind, toBare, count),
      processor: 0,
      settled: [],
    })),
  );
}

/** Resolves with the durations of the lone commits, in milliseconds. */
async function runRounds(
  pairs: readonly Pair[],
  server: EverstepProcess,
  lone: LoneCommits,
  rounds: number,
): Promise<number[]> {
  const commits: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const pair of pairs) await runPair(pair, server);
    for (let index = 0; index < COMMITS_IN_BLOCK; index++) commits.push(await lone.commit());
  }
  return commits;
}

async function runPair(pair: Pair, server: EverstepProcess): Promise<void> {
  const before = await server.usage();
  await pair.everstep.runBlock();
  const answered = performance.now();
  await server.settled();
  pair.settled.push(performance.now() - answered);
  pair.processor += (await server.usage()).processor - before.processor;
  await pair.bare.runBlock();
}

function forget(pair: Pair): void {
  pair.everstep.forget();
  pair.bare.forget();
  pair.processor = 0;
  pair.settled = [];
}
