import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { startEverstep } from "./everstep-process.ts";
import { Follower } from "./follower.ts";
import { type KeptConnection, postRequest, sendChecked } from "./kept-connection.ts";
import { openLoneCommits } from "./lone-commits.ts";

const WARM_UP = 20;

type Try = { answered: number; consumed: number; commit: number };

export async function measureGuidance({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using server = await startEverstep(join(folder, "guidance"));
  await using lone = await openLoneCommits(join(folder, "guidance-lone"));
  const { connection } = server;
  const create = { agent_id: "bench", moniker: "echo" };
  const { session_id } = await sendChecked<{ session_id: string }>(connection, postRequest("/api/agents", create));
  using follower = await Follower.connect(server.port);
  await follower.subscribe({ session_id });
  const tries: Try[] = [];
  for (let index = -WARM_UP; index < (quick ? 50 : 200); index++) {
    const one = { ...(await guide(connection, follower, session_id, `try ${index}`)), commit: await lone.commit() };
    if (index >= 0) tries.push(one);
  }
  return figures(tries);
}

/** From the request to the receipt that a step used it, as received by the sender. */
async function guide(
  connection: KeptConnection,
  follower: Follower,
  session_id: string,
  guidance: string,
): Promise<Omit<Try, "commit">> {
  const consumed = follower.nextAction(
    ({ receipt, payload }) => receipt === "consumed" && payload["guidance"] === guidance,
  );
  const sent = performance.now();
  const answer = sendChecked(connection, postRequest(`/api/sessions/${session_id}/interrupt`, { guidance }));
  const [answered, consumed_at] = await Promise.all([answer.then(() => performance.now()), consumed]);
  return { answered: answered - sent, consumed: consumed_at - sent };
}

function figures(tries: readonly Try[]): Figure[] {
  const consumed = summarize(tries.map((one) => one.consumed));
  const answered = summarize(tries.map((one) => one.answered));
  const commit = summarize(tries.map((one) => one.commit));
  const name = "guidance over HTTP to its receipt over a socket";
  return [
    { figure: `${name}, p50`, measured: consumed.p50, unit: "ms", bar: below(50) },
    { figure: `${name}, p99`, measured: consumed.p99, unit: "ms", bar: null },
    { figure: `${name}, longest`, measured: consumed.max, unit: "ms", bar: null },
    { figure: "the answer to that request, p50", measured: answered.p50, unit: "ms", bar: null },
    { figure: "three lone commits in turn with it, p50", measured: commit.p50 * 3, unit: "ms", bar: null },
  ];
}
