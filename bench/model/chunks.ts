import { once } from "node:events";
import { join } from "node:path";
import { WebSocket } from "ws";
import type { BenchContext } from "../bench.ts";
import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import { startWithModel } from "./everstep-with-model.ts";

const WARM_UP = 5;

export async function measureChunks({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using started = await startWithModel(join(folder, "model-chunks"));
  const { everstep, model } = started;
  const socket = new WebSocket(`ws://127.0.0.1:${everstep.port}/agent_ws/`);
  const frames = framesOf(socket);
  await frames.next("status");
  const times: number[] = [];
  for (let index = -WARM_UP; index < (quick ? 30 : 150); index++) {
    socket.send(JSON.stringify({ type: "user_message", text: `Question ${index}.` }));
    const call = await model.next();
    const said = performance.now();
    call.say("Once upon a time");
    const came = await frames.next("event_text_chunk");
    if (index >= 0) times.push(came - said);
    call.say(" there was an end.");
    call.end();
    await frames.next("event_end");
  }
  socket.terminate();
  const { p50, p99, max } = summarize(times);
  const name = "the model's first word to the client of the one chat";
  return [
    { figure: `${name}, p50`, measured: p50, unit: "ms", bar: atMost(60) },
    { figure: `${name}, p99`, measured: p99, unit: "ms", bar: null },
    { figure: `${name}, longest`, measured: max, unit: "ms", bar: null },
  ];
}

/** When the next frame of a type arrived. */
function framesOf(socket: WebSocket): { next(type: string): Promise<number> } {
  const came: { type: string; at: number }[] = [];
  let wake = (): void => {};
  socket.on("message", (data) => {
    came.push({ type: (JSON.parse((data as Buffer).toString()) as { type: string }).type, at: performance.now() });
    wake();
  });
  const closed = once(socket, "close").then(() => {
    throw new Error("the server closed the chat's connection");
  });
  closed.catch(() => {});
  return {
    async next(type) {
      for (;;) {
        const frame = came.shift();
        if (frame?.type === type) return frame.at;
        if (frame?.type === "error") throw new Error("the chat answered with an error");
        if (!frame) await Promise.race([closed, new Promise<void>((resolve) => (wake = resolve))]);
      }
    },
  };
}
