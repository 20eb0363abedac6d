import { isLive, type Session } from "../../../domain/session.ts";
import type { Step } from "../../../domain/step.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured, printable, statusText } from "../output.ts";
import { findSession } from "../sessions.ts";
import { StepPrinter } from "../step-printer.ts";

export type LogsOptions = { follow?: boolean; tail?: string; json?: boolean };
type Delta = { iteration: number; event_seq: number; text: string };

const PAGE = 500;

/** Prints a session's steps, and with `follow` those to come, their text as it grows. */
export async function logs(client: ApiClient, prefix: string, { follow, tail, json }: LogsOptions): Promise<void> {
  const session = await findSession(client, prefix);
  const printer = new StepPrinter({ json: json ?? false, live: process.stdout.isTTY });
  const from = tail === undefined ? -1 : Math.max(-1, session.iteration - Number(tail));
  if (!follow) {
    await printAll(client, session.session_id, from, printer);
    return;
  }
  await followSession(client, session, from, printer);
}

async function printAll(client: ApiClient, session_id: string, from: number, printer: StepPrinter): Promise<void> {
  for (let offset = 0; ; offset += PAGE) {
    const { steps } = await client.get<{ steps: Step[] }>("/api/agent-steps", {
      session_id,
      after_iteration: from,
      limit: PAGE,
      offset,
    });
    for (const step of steps) printer.step(step);
    if (steps.length < PAGE) return;
  }
}

async function followSession(client: ApiClient, session: Session, from: number, printer: StepPrinter): Promise<void> {
  const { session_id } = session;
  const socket = client.socket();
  let last = from;
  const ended = Promise.withResolvers<Session>();
  const endWhenOver = (current: Session) => {
    if (!isLive(current.status) && last >= current.iteration) ended.resolve(current);
  };
  const subscribe = async () => {
    socket.emit("subscribe", { session_id, after_iteration: last });
    endWhenOver(await client.get<Session>(`/api/sessions/${encodeURIComponent(session_id)}`));
  };
  socket.on("connect", () => void subscribe().catch((error: unknown) => ended.reject(error as Error)));
  socket.on("connect_error", (error) => {
    if (socket.active) printer.note("the connection was lost; trying again…");
    else ended.reject(new CommandError(error.message));
  });
  socket.on("agent_step_delta", ({ iteration, event_seq, text }: Delta) => printer.delta(iteration, event_seq, text));
  let latest = session;
  socket.on("agent_step", (step: Step) => {
    if (step.status === "ok") last = Math.max(last, step.iteration);
    printer.step(step);
    endWhenOver(latest);
  });
  socket.on("agent_state_update", (current: Session) => {
    latest = current;
    printer.progress(current);
    endWhenOver(current);
  });
  try {
    const { status, stop_reason, last_error } = await ended.promise;
    printer.end();
    printer.note(
      `the session is ${statusText(status)}${stop_reason ? ` (${stop_reason})` : ""}${last_error ? `: ${coloured("red", printable(last_error))}` : ""}`,
    );
  } finally {
    socket.disconnect();
  }
}
