import { setTimeout as wait } from "node:timers/promises";
import { isLive, type Session, sessionSchema } from "../../../domain/session.ts";
import type { Step } from "../../../domain/step.ts";
import { type ApiClient, CommandError, UnreachableError } from "../client.ts";
import { coloured, outageText, printable, statusText } from "../output.ts";
import { findSession, stepsAfter } from "../sessions.ts";
import { StepPrinter } from "../step-printer.ts";

export type LogsOptions = { follow?: boolean; tail?: string; json?: boolean };
type Delta = { iteration: number; event_seq: number; text: string };

const RETRY_MS = 1000;
const LOST = "the connection was lost; trying again…";

/** Prints a session's steps, and with `follow` those to come, their text as it grows. */
export async function logs(client: ApiClient, prefix: string, { follow, tail, json }: LogsOptions): Promise<void> {
  const session = await findSession(client, prefix);
  const printer = new StepPrinter({ json: json ?? false, live: process.stdout.isTTY });
  const from = tail === undefined ? -1 : Math.max(-1, session.iteration - Number(tail));
  if (follow) return followSession(client, session.session_id, from, printer);
  for await (const step of stepsAfter(client, session.session_id, from)) printer.step(step);
  const outage = outageText(session);
  if (outage !== null) printer.note(coloured("yellow", outage));
}

async function followSession(client: ApiClient, session_id: string, from: number, printer: StepPrinter): Promise<void> {
  const socket = await client.socket();
  let last = from;
  /** Attempts at the iteration after `last` that were printed: a new subscription tells them again. */
  const failed = new Set<string>();
  const print = (step: Step) => {
    if (step.iteration <= last || failed.has(step.id)) return;
    if (step.status === "ok") {
      last = step.iteration;
      failed.clear();
    } else failed.add(step.id);
    printer.step(step);
  };
  const ended = Promise.withResolvers<Session>();
  let outage: string | null = null;
  const look = (current: Session) => {
    const told = outage;
    outage = outageText(current);
    if (outage !== null && outage !== told) printer.note(coloured("yellow", outage));
    if (!isLive(current.status)) ended.resolve(current);
  };
  const subscribe = async () => {
    socket.emit("subscribe", { session_id, after_iteration: last });
    const path = `/api/sessions/${encodeURIComponent(session_id)}`;
    look(await patiently(printer, () => client.get(sessionSchema, path)));
  };
  socket.on("connect", () => void subscribe().catch((error: unknown) => ended.reject(error as Error)));
  socket.on("connect_error", (error) => {
    if (socket.active) printer.note(LOST);
    else ended.reject(new CommandError(error.message));
  });
  socket.on("agent_step_delta", ({ iteration, event_seq, text }: Delta) => printer.delta(iteration, event_seq, text));
  socket.on("agent_step", print);
  socket.on("agent_state_update", (current: Session) => {
    printer.progress(current);
    look(current);
  });
  const over = await ended.promise.finally(() => socket.off().disconnect());
  // The end may be told by another way than the steps and overtake the last of them, also the one that says why.
  await patiently(printer, async () => {
    for await (const step of stepsAfter(client, session_id, last)) print(step);
  });
  const { status, stop_reason, last_error } = over;
  printer.end();
  printer.note(
    `the session is ${statusText(status)}${stop_reason ? ` (${stop_reason})` : ""}${last_error ? `: ${coloured("red", printable(last_error))}` : ""}`,
  );
}

/** A server that is gone for a while is asked until it is back. */
async function patiently<Answer>(printer: StepPrinter, ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      printer.note(LOST);
      await wait(RETRY_MS);
    }
  }
}
