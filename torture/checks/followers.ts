import { setTimeout as wait } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Step } from "../../src/domain/step.ts";
import type { Follower } from "../followers.ts";
import type { Rows } from "../rows.ts";

const PATIENCE_MS = 30_000;
const LOOK_MS = 50;

/** A follower from the beginning received each row once and in order, over any number of connections. */
export async function checkFollowers(followers: readonly Follower[], rows: Rows): Promise<string[]> {
  const until = performance.now() + PATIENCE_MS;
  const late = () => followers.some((follower) => count(follower) < due(follower, rows));
  while (late() && performance.now() < until) await wait(LOOK_MS);
  return followers.flatMap((follower) => {
    const name = `the follower of ${JSON.stringify(follower.topic)} (${follower.connections.length} connections)`;
    return check(follower, rows).map((line) => `${name} ${line}`);
  });
}

const ok = ({ status }: Step): boolean => status === "ok";

const count = (follower: Follower): number =>
  "session_id" in follower.topic ? follower.steps.filter(ok).length : follower.messages.length;

function due({ topic }: Follower, { steps, messages }: Rows): number {
  if ("session_id" in topic) return (steps.get(topic.session_id) ?? []).filter(ok).length;
  return messages.get(topic.conversation_id)?.length ?? 0;
}

function check(follower: Follower, { steps, messages }: Rows): string[] {
  const { topic } = follower;
  if ("conversation_id" in topic)
    return compare(follower.messages, messages.get(topic.conversation_id) ?? [], (row) => row.message_id);
  const expected = steps.get(topic.session_id) ?? [];
  const violations = compare(follower.steps.filter(ok), expected.filter(ok), ({ iteration }) => String(iteration));
  // A failed step uses up no iteration, so a new connection sends it again; one connection sends it once.
  const failed = expected.filter((step) => !ok(step)).map(({ id }) => id);
  const receivedIds = new Set(follower.steps.map(({ id }) => id));
  violations.push(...failed.filter((id) => !receivedIds.has(id)).map((id) => `missed the failed step ${id}`));
  for (const connection of follower.connections) {
    const ids = connection.steps.map(({ id }) => id);
    if (new Set(ids).size !== ids.length) violations.push(`got a step twice in one connection: ${ids.join(" ")}`);
  }
  return violations;
}

function compare<Row>(rows: Row[], expected: Row[], nameOf: (row: Row) => string): string[] {
  if (isDeepStrictEqual(rows, expected)) return [];
  const [names, expectedNames] = [rows.map(nameOf), expected.map(nameOf)];
  if (isDeepStrictEqual(names, expectedNames)) {
    const at = rows.findIndex((row, index) => !isDeepStrictEqual(row, expected[index]));
    return [`got ${nameOf(rows[at] as Row)} as ${JSON.stringify(rows[at])}, it is ${JSON.stringify(expected[at])}`];
  }
  const missed = expectedNames.filter((name) => !names.includes(name));
  const twice = names.filter((name, at) => names.indexOf(name) !== at);
  const strange = names.filter((name) => !expectedNames.includes(name));
  return [
    `missed [${missed.join(", ")}], got twice [${twice.join(", ")}], got besides [${strange.join(", ")}], or in another order`,
  ];
}
