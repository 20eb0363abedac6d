import type { JsonObject } from "../src/domain/json.ts";
import { Api } from "../test/server/api.ts";
import { randomFrom } from "../test/store/random.ts";
import { breakThings } from "./break-things.ts";
import { Caller } from "./caller.ts";
import { check, type Witnesses } from "./check.ts";
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
import { GUESTS, Guests } from "./surroundings/guests.ts";
import { openSurroundings, type Surroundings } from "./surroundings/surroundings.ts";
import { Violations } from "./violations.ts";

const STAGES: Stages = { lancedb: openEmbeddedStage, postgres: openSharedStage };

export type Report = {
  violations: string[];
  faults: Map<string, number>;
  counts: Record<string, number>;
  /** The logs of all processes. */
  log: string;
  /** All rows and what outside parties saw, as JSON. */
  evidence: () => string;
};

/** Carries out the plan, waits until everything is at rest, and checks what is left. */
export async function torture(plan: Plan): Promise<Report> {
  const violations = new Violations();
  await using surroundings = await openSurroundings(randomFrom(plan.seed));
  await using stage = await STAGES[plan.store](violations, surroundings);
  const caller = new Caller(stage.urls, randomFrom(plan.seed));
  const followers = new Followers(stage.urls, randomFrom(plan.seed));
  const ledger = new Ledger();
  const client = new Client(caller, ledger, followers, violations);
  const guests = new Guests(stage.urls, randomFrom(plan.seed));
  await prepare(plan, { caller, client, followers, surroundings });
  const over = new AbortController();
  const disturbing = disturb(stage.urls, randomFrom(plan.seed), violations, over.signal);
  const visiting = guests.run(over.signal);
  const faults = await load(plan, stage, client);
  over.abort();
  await visiting;
  surroundings.beGood();
  const { requests: malformed_requests, frames: malformed_frames } = await disturbing;
  console.log(`the plan is carried out: ${ledger.entries.length} operations; all comes to rest`);
  const [url] = stage.urls as [string];
  await settle(url, violations);
  await surroundings.receiver.settle(new Api(url));
  const seen = await readOverHttp(url);
  const { receiver, office, provider } = surroundings;
  const witnesses = { payments: await office.payments(), delivered: receiver.delivered, guests: guests.answers };
  violations.add(...check(seen, ledger, plan, witnesses));
  violations.add(...(await checkFollowers(followers.all, seen)));
  await followers.stop();
  await Promise.all(stage.members.map((member) => member.stop()));
  const kept = await readFromStore(stage.store_url, seen);
  violations.add(...differences(seen, kept), ...check(kept, ledger, plan, witnesses));
  const counts = {
    ...caller.counts,
    ...countsOf(kept, followers),
    malformed_requests,
    malformed_frames,
    payments: witnesses.payments.length,
    deliveries: witnesses.delivered.length,
    model_calls: [...provider.counts.values()].reduce((sum, count) => sum + count, 0),
    ...guests.counts,
  };
  const log = stage.members.map(({ said }) => said).join("\n\n");
  return { violations: violations.all, faults, counts, log, evidence: () => evidenceOf(kept, witnesses) };
}

const evidenceOf = (rows: Rows, witnesses: Witnesses): string =>
  JSON.stringify({ ...rows, witnesses }, (_, value: unknown) =>
    value instanceof Map ? (Object.fromEntries(value) as JsonObject) : value,
  );

type Cast = { caller: Caller; client: Client; followers: Followers; surroundings: Surroundings };

/** Creates the conversations, their agents, the webhook and the guests' agent before the first fault. */
async function prepare(plan: Plan, { caller, client, followers, surroundings }: Cast): Promise<void> {
  const webhook = surroundings.receiver.request;
  for (const [place, config] of [
    [webhook.path, webhook.body],
    [`/api/agents/${GUESTS}/config`, { moniker: "echo" }],
  ] as const) {
    const called = await caller.call("PUT", place, config as JsonObject);
    if (called.kind !== "answered" || called.status >= 300) throw new Error(`${place}: ${JSON.stringify(called)}`);
  }
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
  // A client that was held up by faults skips the rest of its part.
  const patience = setTimeout(() => late.abort(), Math.max(0, begun + plan.minutes * 60_000 - performance.now()));
  await Promise.all(clients);
  clearTimeout(patience);
  return faults;
}

function countsOf({ sessions, steps, actions, messages }: Rows, followers: Followers): Record<string, number> {
  const sum = (lists: Map<string, unknown[]>): number =>
    [...lists.values()].reduce((total, { length }) => total + length, 0);
  const all = [...steps.values()].flat();
  return {
    sessions: sessions.size,
    children: [...sessions.values()].filter(({ spawned_by }) => spawned_by !== null).length,
    answers: [...actions.values()].filter(({ action_type }) => action_type === "agent_answer").length,
    calls_in_doubt: all.filter(({ directives }) => directives?.ask?.choices?.[0]?.value === "again").length,
    waits: all.filter(({ directives }) => directives?.wait?.until !== undefined).length,
    steps: sum(steps),
    actions: actions.size,
    messages: sum(messages),
    followers: followers.all.length,
    connections: followers.all.reduce((total, { connections }) => total + connections.length, 0),
  };
}
