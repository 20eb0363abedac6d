import type { Random } from "../../test/store/random.ts";
import type { Fault, StoreKind, Timed } from "./plan.ts";

type Kind = Fault["kind"];

const KINDS: Readonly<Record<StoreKind, readonly Kind[]>> = {
  lancedb: ["kill", "kill", "kill", "freeze", "terminate", "reload", "fill_disk", "fill_disk"],
  postgres: [
    "kill",
    "kill",
    "kill",
    "freeze",
    "freeze",
    "terminate",
    "reload",
    "fill_disk",
    "restart_database",
    "end_connections",
    "cancel_statements",
    "network",
    "network",
    "cut_connections",
    "cut_connections",
    "hold_locks",
    "take_connections",
    "limit_statements",
  ],
};
/** Time between faults, in milliseconds. One that lasts longer overlaps the next. */
const GAP_MS = 5000;
/** More than there are processes; the number is taken modulo their count. */
const MEMBERS = 60;
/** No faults in the last 5 percent, so that the last requests can complete. */
const QUIET_END = 0.95;
const CUTS = ["mid_request", "lost_answer", "mid_answer"] as const;
const LOCKS = [
  "select 1 from agent_state for update",
  "select 1 from queue for update",
  "select 1 from workers for update",
  "select 1 from writers for update",
  "lock table agent_state in access exclusive mode",
  "lock table agent_steps in exclusive mode",
];
const FREE_BYTES = [0, 4096, 40_960, 204_800, 1_048_576];

export function faultsOf(random: Random, duration: number, store: StoreKind): Timed<Fault>[] {
  const faults: Timed<Fault>[] = [];
  for (let at_ms = 2000; at_ms < duration * QUIET_END; at_ms += 500 + random.below(2 * GAP_MS))
    faults.push({ at_ms, what: draw(random, random.pick(KINDS[store])) });
  return faults;
}

function draw(random: Random, kind: Kind): Fault {
  const member = random.below(MEMBERS);
  switch (kind) {
    case "kill":
    case "terminate":
    case "reload":
      return { kind, member };
    case "freeze":
      // Both shorter and longer than the five seconds after which the others consider a silent process dead.
      return { kind, member, for_ms: 200 + random.below(9000) };
    case "fill_disk":
      return { kind, free_bytes: random.pick(FREE_BYTES), for_ms: 500 + random.below(6000) };
    case "restart_database":
      return { kind, for_ms: random.below(3000) };
    case "end_connections":
      return { kind, share: random.pick([0.2, 0.5, 1]), for_ms: 0 };
    case "cancel_statements":
      return { kind, for_ms: 500 + random.below(4000) };
    case "network":
      return {
        kind,
        how: random.pick(["hold", "delay", "refuse"] as const),
        delay_ms: 20 + random.below(300),
        for_ms: 500 + random.below(9000),
      };
    case "cut_connections":
      return { kind, cuts: Array.from({ length: 1 + random.below(12) }, () => random.pick(CUTS)), for_ms: 2000 };
    case "hold_locks":
      return { kind, statement: random.pick(LOCKS), for_ms: 500 + random.below(9000) };
    case "take_connections":
    case "limit_statements":
      return { kind, for_ms: 2000 + random.below(5000) };
  }
  return kind satisfies never;
}
