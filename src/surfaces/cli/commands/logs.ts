import type { Session } from "../../../domain/session.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { FOLLOWED_FAILED } from "../exit-codes.ts";
import { coloured, printable, retryText, statusText } from "../output.ts";
import { findSession, stepsAfter } from "../sessions.ts";
import { StepPrinter } from "../step-printer.ts";

export type LogsOptions = { follow?: boolean; tail?: string; json?: boolean };

const LOST = "connection lost; reconnecting…";

/** Prints a session's steps; with `follow` also new ones, their text as it streams. */
export async function logs(client: ApiClient, name: string, { follow, tail, json }: LogsOptions): Promise<void> {
  const session = await findSession(client, name);
  const printer = new StepPrinter({ json: json ?? false, live: process.stdout.isTTY });
  const from = tail === undefined ? -1 : Math.max(-1, session.iteration - Number(tail));
  if (follow) return followSession(client, session.session_id, from, printer);
  for await (const step of stepsAfter(client, session.session_id, from)) printer.step(step);
  const waiting = retryText(session);
  if (waiting !== null) printer.note(coloured("yellow", waiting));
}

async function followSession(client: ApiClient, session_id: string, from: number, printer: StepPrinter): Promise<void> {
  const lost = (): void => printer.note(LOST);
  let last: Session | undefined;
  let note: string | null = null;
  for await (const event of client.events(session_id, { after: from, until_ended: true, on_disconnect: lost })) {
    if (event.type === "agent_step") printer.step(event.data);
    else if (event.type === "agent_step_delta")
      printer.delta(event.data.iteration, event.data.event_seq, event.data.text);
    else if (event.type === "agent_state_update") {
      last = event.data;
      printer.progress(last);
      const waiting = retryText(last);
      if (waiting !== null && waiting !== note) printer.note(coloured("yellow", waiting));
      note = waiting;
    }
  }
  printer.end();
  if (last) printEnd(last, printer);
}

function printEnd({ status, stop_reason, last_error }: Session, printer: StepPrinter): void {
  const reason = last_error ? `: ${coloured("red", printable(last_error))}` : "";
  const text = `the session is ${statusText(status)}${stop_reason ? ` (${stop_reason})` : ""}${reason}`;
  if (status === "error") throw new CommandError(text, FOLLOWED_FAILED);
  printer.note(text);
}
