import { readFile } from "node:fs/promises";
import type { Person } from "../../test/matrix/person.ts";

/** From sending a message to the reply as shown by the person's own client. */
export async function roundTripMs(person: Person, room_id: string, text: string): Promise<number> {
  const sent = performance.now();
  await person.ask(room_id, text, new RegExp(`You said: ${text}\\b`));
  return performance.now() - sent;
}

export async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
}
