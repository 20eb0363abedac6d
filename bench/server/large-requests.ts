import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { BenchContext } from "../bench.ts";
import { below, type Figure } from "../figure.ts";
import { type EverstepProcess, startEverstep } from "./everstep-process.ts";
import { postRequest, sendChecked } from "./kept-connection.ts";

const MEBIBYTE = 1024 * 1024;
/** Room in the body for everything but the guidance or the text. */
const ROOM = 2000;
const LAG = "nodejs_eventloop_lag_max_seconds";
const MOST_MS = 200;
const ROUNDS = 3;
/** The most characters in a message. */
const LONGEST_TEXT = 500_000;

const filled = (text: string): string =>
  text.repeat(Math.floor((MEBIBYTE - ROOM) / (Buffer.byteLength(JSON.stringify(text)) - 2)));
const many = (item: string): unknown => JSON.parse(`[${filled(`${item},`).slice(0, -1)}]`);

/** Values of one mebibyte that are hard on the parser, the checks, the search's word splitting, or a moniker. */
const GUIDANCE: Readonly<Record<string, unknown>> = {
  "one long word": filled("x"),
  "short words": filled("a b "),
  "words of many scripts": filled("ä ё 茶 😀 "),
  spaces: filled(" "),
  "nested quotes": filled("> "),
  "emphasis without end": filled("*_"),
  brackets: filled("[("),
  "line ends": filled("\n"),
  "the save prompt with spaces": `Summarize our conversation and save to /workspace/contexts/a.md. Reply only with: a${filled(" ")}b`,
  "a list of numbers": many("1"),
  "a list of empty objects": many("{}"),
  "an object of many keys": Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`k${index}`, 0])),
  "keys that collide": Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [String(index * 65_536), 0])),
};

/** How long the event loop is blocked by one request of a mebibyte, including everything that follows from it. */
export async function measureLargeRequests({ folder, quick }: BenchContext): Promise<Figure[]> {
  await using server = await startEverstep(join(folder, "large-requests"));
  for (const moniker of ["echo", "chat", "joke"])
    await sendChecked(
      server.connection,
      postRequest("/api/agents", { agent_id: moniker, session_id: moniker, moniker }),
    );
  await sendChecked(server.connection, postRequest("/api/conversations", { conversation_id: "talk" }));
  const figures: Figure[] = [];
  for (const [what, value] of Object.entries(GUIDANCE)) {
    const requests = ["echo", "chat", "joke"].map((session): [string, string] => [
      `guidance to ${session}`,
      postRequest(`/api/sessions/${session}/interrupt`, { guidance: value }),
    ]);
    if (typeof value === "string")
      requests.push([
        "a message",
        postRequest("/api/conversations/talk/messages", { user_id: "ann", text: value.slice(0, LONGEST_TEXT) }),
      ]);
    for (const [where, request] of requests) {
      const measured = await longestStill(server, request, quick ? 1 : ROUNDS);
      figures.push({ figure: `event loop: ${where}, ${what}`, measured, unit: "ms", bar: below(MOST_MS) });
    }
  }
  return figures;
}

/** The shortest of several tries, to exclude other load on the machine. */
async function longestStill(server: EverstepProcess, request: string, rounds: number): Promise<number> {
  const tries: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await server.settled();
    await server.metric(LAG);
    await sendChecked(server.connection, request);
    await server.settled();
    await wait(100);
    tries.push((await server.metric(LAG)) * 1000);
  }
  return Math.min(...tries);
}
