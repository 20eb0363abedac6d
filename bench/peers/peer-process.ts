import { openSync, writeSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { News } from "../runtime/news.ts";
import { randomText, seededRandom } from "../stats.ts";
import { controlRound } from "./control-round.ts";
import type { OpenPeer, StepFunction } from "./peer.ts";
import type { PeerStart, Reply, StepOrder } from "./protocol.ts";
import { StepRecord } from "./step-record.ts";

// Runs one peer in a separate process, which executes the bench's orders one after another.
const { program, variant, place, trace, life } = JSON.parse(process.argv[2] as string) as PeerStart;
const news = new News();
const record = new StepRecord(news);
// One write per line, so that a killed process leaves only whole lines.
const traced = trace === null ? null : openSync(trace, "a");
const random = seededRandom(5);
const PIECES = Array.from({ length: 512 }, () => randomText(random, 1_024));

const step: StepFunction = async (session_id, index, { step_ms, piece_bytes }) => {
  record.started(session_id, index);
  if (traced !== null) writeSync(traced, `${life} started ${session_id} ${index}\n`);
  if (step_ms > 0) await wait(step_ms);
  if (traced !== null) writeSync(traced, `${life} ended ${session_id} ${index}\n`);
  record.ended(session_id, index);
  return piece_bytes > 0 ? (PIECES[index % PIECES.length] as string).slice(0, piece_bytes) : "";
};

const { open } = (await import(program)) as { open: OpenPeer };
const peer = await open(place, step, variant);

async function follow(order: StepOrder): Promise<Reply> {
  switch (order.kind) {
    case "run": {
      record.clear();
      const begun = performance.now();
      await peer.run(order.session_ids, order.task);
      return { kind: "ran", ms: performance.now() - begun, gaps: record.gaps(), steps: record.count() };
    }
    case "start":
    case "recover": {
      const begun = peer[order.kind === "start" ? "run" : "recover"]?.(order.session_ids, order.task);
      // A run that is paused or killed on purpose may fail.
      begun?.catch(() => {});
      await news.until("every session has started a step", () => order.session_ids.every((id) => record.has(id)));
      return { kind: "running", at: performance.timeOrigin + performance.now() };
    }
    case "control":
      if (!peer.control) throw new Error("this peer has no control");
      return { kind: "controlled", round: await controlRound(peer.control, record, news, order.session_ids) };
    case "close":
      await peer.close();
      return { kind: "closed" };
  }
  return order satisfies never;
}

const reply = (message: Reply): void => void process.send?.(message);
process.on("message", (order: StepOrder) => {
  const failed = (error: unknown): void => reply({ kind: "failed", message: (error as Error).message });
  follow(order).then(reply, failed).catch(failed);
});
process.once("disconnect", () => process.exit(1));
reply({ kind: "ready" });
