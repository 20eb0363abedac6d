import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { atMost, below, type Figure } from "../figure.ts";
import { type EverstepProcess, startEverstep } from "../server/everstep-process.ts";
import { postRequest, sendChecked } from "../server/kept-connection.ts";
import { StreamReader } from "./stream-reader.ts";

const SESSIONS = 50;
const READERS = 500;
const CONNECT_AT_ONCE = 25;
const STEP_MS = 20;
const STATE_BYTES = 2000;
const LOOK_EVERY_MS = 250;
/** Milliseconds without an event after which missing ones count as lost. */
const STALLED_AFTER_MS = 15_000;

/** Ten readers follow each session; one more follows everything and never reads. */
export async function measureEventStreams({ folder, quick }: BenchContext): Promise<Figure[]> {
  const steps = quick ? 100 : 500;
  await using server = await startEverstep(join(folder, "event-streams"), { EVERSTEP_SLOW_READER_S: "5" });
  const session_ids = Array.from({ length: SESSIONS }, (_, index) => `streamed-${index}`);
  for (const session_id of session_ids) await create(server, session_id, steps);
  const readers: StreamReader[] = [];
  using stack = new DisposableStack();
  for (let from = 0; from < READERS; from += CONNECT_AT_ONCE) {
    const some = Array.from({ length: CONNECT_AT_ONCE }, (_, index) =>
      StreamReader.open(server.port, session_ids[(from + index) % SESSIONS] as string),
    );
    for (const reader of await Promise.all(some)) readers.push(stack.use(reader));
  }
  const deaf = await neverReading(server.port);
  stack.defer(() => deaf.destroy());
  const connected = (await server.usage()).resident;
  const begun = performance.now();
  for (const session_id of session_ids)
    await sendChecked(server.connection, postRequest(`/api/sessions/${session_id}/resume`, {}));
  const peak = await untilComplete(server, readers, steps);
  const seconds = (performance.now() - begun) / 1000;
  const rows = readers.reduce((sum, { count }) => sum + count, 0);
  const name = (what: string) => `${READERS} readers of server-sent events, one that never reads: ${what}`;
  return [
    { figure: name("rows lost"), measured: READERS * steps - rows, unit: "", bar: atMost(0) },
    { figure: name("rows twice or out of order"), measured: sum(readers, "faults"), unit: "", bar: atMost(0) },
    { figure: name("rows delivered"), measured: rows / seconds, unit: "/s", bar: null },
    { figure: name("server's memory once they are connected"), measured: connected / 1e6, unit: "MB", bar: null },
    { figure: name("server's memory at its peak"), measured: peak / 1e6, unit: "MB", bar: below(600) },
  ];
}

const sum = (readers: readonly StreamReader[], field: "faults"): number =>
  readers.reduce((total, reader) => total + reader[field], 0);

/** Paused before its first step, so that every reader connects in time. */
async function create({ connection }: EverstepProcess, session_id: string, steps: number): Promise<void> {
  const params = { to: steps - 1, delay_ms: STEP_MS, payload_bytes: STATE_BYTES };
  const options = { hold_before: ["0"] };
  await sendChecked(
    connection,
    postRequest("/api/agents", { agent_id: "bench", moniker: "count", session_id, params, options }),
  );
}

async function neverReading(port: number) {
  const socket = connect({ port, host: "127.0.0.1" }).pause();
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(`GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`);
  return socket;
}

async function untilComplete(
  server: EverstepProcess,
  readers: readonly StreamReader[],
  steps: number,
): Promise<number> {
  let peak = 0;
  let before = -1;
  let since = performance.now();
  for (;;) {
    peak = Math.max(peak, (await server.usage()).resident);
    const rows = readers.reduce((total, { count }) => total + count, 0);
    if (rows >= readers.length * steps || performance.now() - since > STALLED_AFTER_MS) return peak;
    if (rows !== before) since = performance.now();
    before = rows;
    await wait(LOOK_EVERY_MS);
  }
}
