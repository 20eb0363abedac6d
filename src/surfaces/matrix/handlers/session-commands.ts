import type { IncomingCommand } from "../events/incoming.ts";
import { notice } from "../outgoing/outgoing.ts";
import { NOT_PUT } from "../state/dialogs.ts";
import type { Task } from "../state/jobs.ts";
import type { Handler } from "./handler.ts";

/** Only for operators; everyone else is told so. */
function forOperators(handler: Handler<IncomingCommand>): Handler<IncomingCommand> {
  return (event, context) =>
    context.isOperator(event.user_id) ? handler(event, context) : [notice(context.say.operators_only)];
}

const onSession = (command: string, toTask: (session: string) => Task): Handler<IncomingCommand> =>
  forOperators((event, { state, say }) => {
    const [session] = event.argument.split(/\s+/);
    if (!session) return [notice(say.session_missing(command))];
    state.jobs.add(event, toTask(session));
    return [];
  });

export const agents = forOperators((event, { state }) => {
  state.jobs.add(event, { kind: "agents" });
  return [];
});

export const pause = onSession("pause", (session) => ({ kind: "control", verb: "pause", session }));
export const resume = onSession("resume", (session) => ({ kind: "control", verb: "resume", session }));

/**
 * The session is looked for before the question is put. The question is open from now on all the same: a `!yes` that comes before it is
 * put must not agree to an older one.
 */
export const destroy = forOperators((event, { state, say }) => {
  const [session] = event.argument.split(/\s+/);
  if (!session) return [notice(say.session_missing("destroy"))];
  state.dialogs.open(event, { kind: "destroy", session }, NOT_PUT, state.dialogs.current(event)?.question ?? null);
  state.jobs.add(event, { kind: "ask_destroy", session, sent_at: event.sent_at });
  return [];
});

const withText = (
  command: "guide" | "answer",
  toTask: (session: string, text: string) => Task,
): Handler<IncomingCommand> =>
  forOperators((event, { state, say }) => {
    const match = /^(\S+)\s+([\s\S]+)$/.exec(event.argument);
    if (!match) return [notice(say.text_missing(command))];
    state.jobs.add(event, toTask(match[1] as string, match[2] as string));
    return [];
  });

export const guide = withText("guide", (session, text) => ({ kind: "guide", session, text }));
export const answer = withText("answer", (session, text) => ({ kind: "answer", session, text }));

export const watch = forOperators((event, context) => {
  const { state, say } = context;
  if (event.argument.toLowerCase() !== "off")
    return onSession("watch", (session) => ({ kind: "watch", session }))(event, context);
  const watches = state.watches.in(event.room_id);
  for (const each of watches) {
    state.watches.end(each);
    state.session_questions.end(each);
  }
  return [notice(say.watch_stopped(watches.map(({ session_id }) => session_id)))];
});
