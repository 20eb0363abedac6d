import { setTimeout as wait } from "node:timers/promises";
import type { Fault, Timed } from "./plan/plan.ts";
import type { Stage } from "./stage/stage.ts";

/** Inflicts each planned fault on the stage at its time. Resolves when every fault is over and every process is back. */
export async function breakThings(stage: Stage, faults: Timed<Fault>[], begun: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const under_way: Promise<void>[] = [];
  // There is one disk and one database, so their faults run one after another.
  let turn: Promise<void> = Promise.resolve();
  for (const { at_ms, what } of faults) {
    await wait(Math.max(0, begun + at_ms - performance.now()));
    const isOfProcess = "member" in what;
    const done = isOfProcess ? strike(stage, what) : (turn = turn.then(() => strike(stage, what)));
    under_way.push(done);
    counts.set(what.kind, (counts.get(what.kind) ?? 0) + 1);
  }
  await Promise.all(under_way);
  await Promise.all(stage.members.map((member) => member.settled()));
  return counts;
}

async function strike({ members, disk, database, changeCode }: Stage, fault: Fault): Promise<void> {
  const member = "member" in fault ? members[fault.member % members.length] : undefined;
  switch (fault.kind) {
    case "kill":
      return member?.kill();
    case "terminate":
      return member?.terminate();
    case "reload":
      await changeCode();
      return member?.reload();
    case "freeze":
      return member?.freeze(fault.for_ms);
    case "fill_disk":
      await disk?.fill(fault.free_bytes);
      await wait(fault.for_ms);
      return disk?.empty();
    case "restart_database":
    case "end_connections":
    case "cancel_statements":
    case "network":
    case "cut_connections":
    case "hold_locks":
    case "take_connections":
    case "limit_statements":
      return database?.break(fault);
  }
  fault satisfies never;
}
