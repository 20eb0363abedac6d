import { randomFrom } from "../test/store/random.ts";
import { breakThings } from "./break-things.ts";
import { Caller } from "./caller.ts";
import { check } from "./check.ts";
import { checkFollowers } from "./checks/followers.ts";
import { Client } from "./client.ts";
import { Followers } from "./followers.ts";
import { Ledger } from "./ledger.ts";
import type { Plan } from "./plan/plan.ts";
import { differences, type Rows, readFromStore, readOverHttp } from "./rows.ts";
import { settle } from "./settle.ts";
import { openEmbeddedStage } from "./stage/embedded-stage.ts";
import { openSharedStage } from "./stage/shared-stage.ts";
import type { Stage, Stages } from "./stage/stage.ts";
import { disturb } from "./stranger.ts";
import { Violations } from "./violations.ts";

const STAGES: Stages = { lancedb: openEmbeddedStage, postgres: openSharedStage };

export type Report = {
  violations: string[];
  faults: Map<string, number>;
  counts: Record<string, number>;
  /** Of all processes. */
  log: string;
};

/** Carries out the plan, lets everything come to rest, and looks at what is left. */
export async function torture(plan: Plan): Promise<Report> {
  const violations = new Violations();
  await using stage = await STAGES[plan.store](violations);
  const caller = new Caller(stage.urls, randomFrom(plan.seed));
  const followers = new Followers(stage.urls, randomFrom(plan.seed));
  const ledger = new Ledger();
  const client = new Client(caller, ledger, followers, violations);
  await prepare(plan, caller, client, followers);
  const over = new AbortController();
  const disturbing = disturb(stage.urls, randomFrom(plan.seed), violations, over.signal);
  const faults = await load(plan, stage, client);
  over.abort();
  const { requests: malformed_requests, frames: malformed_frames } = await disturbing;
  console.log(`the plan is carried out: ${ledger.entries.length} operations; all comes to rest`);
  const [url] = stage.urls as [string];
  await settle(url, violations);
  const seen = await readOverHttp(url);
  violations.add(...check(seen, ledger, plan));
  violations.add(...(await checkFollowers(followers.all, seen)));
  await followers.stop();
  await Promise.all(stage.members.map((member) => member.stop()));
  const kept = await readFromStore(stage.store_url);
  violations.add(...differences(seen, kept), ...check(kept, ledger, plan));
  const counts = { ...caller.counts, ...countsOf(kept, followers), malformed_requests, malformed_frames };
  return { violations: violations.all, faults, counts, log: stage.members.map(({ said }) => said).join("\n\n") };
}

/** The conversations and their agents are there before anything goes wrong. */
async function prepare(plan: Plan, caller: Caller, client: Client, followers: Followers): Promise<void> {
  for (const conversation_id of plan.conversations) {
    for (const id of [conversation_id, `${conversation_id} at work`]) {
      const called = await caller.call("POST", "/api/conversations", { conversation_id: id });
      if (called.kind !== "answered" || called.status !== 201)
        throw new Error(`no conversation: ${JSON.stringify(called)}`);
      followers.follow({ conversation_id: id });
    }
  }
  for (const body of plan.agents) await client.do({ kind: "create", body, again: true, followed: true });
}

async function load(plan: Plan, stage: Stage, client: Client): Promise<Map<string, number>> {
  const begun = performance.now();
  const late = new AbortController();
  const clients = plan.clients.map((operations) => client.run(operations, begun, late.signal));
  const faults = await breakThings(stage, plan.faults, begun);
  // A client whom faults held up leaves the rest of its part undone.
  const patience = setTimeout(() => late.abort(), Math.max(0, begun + plan.minutes * 60_000 - performance.now()));
  await Promise.all(clients);
  clearTimeout(patience);
  return faults;
}

function countsOf({ sessions, steps, actions, messages }: Rows, followers: Followers): Record<string, number> {
  const sum = (lists: Map<string, unknown[]>): number =>
    [...lists.values()].reduce((total, { length }) => total + length, 0);
  return {
    sessions: sessions.size,
    steps: sum(steps),
    actions: actions.size,
    messages: sum(messages),
    followers: followers.all.length,
    connections: followers.all.reduce((total, { connections }) => total + connections.length, 0),
  };
}
