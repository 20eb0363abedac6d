import type { IncomingCommand } from "../events/incoming.ts";
import { notice } from "../outgoing/outgoing.ts";
import { NOT_PUT } from "../state/dialogs.ts";
import { COST_GROUPS, type Task } from "../state/jobs.ts";
import { paramsFrom } from "../text/params-from.ts";
import type { Handler } from "./handler.ts";

/** Only for operators; everyone else is refused. */
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
 * The session is looked up before the question is shown. The question is open from now on nevertheless: a `!yes` that comes before it is
 * shown must not confirm an older one.
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
    state.session_questions.unwatch(each);
  }
  return [notice(say.watch_stopped(watches.map(({ session_id }) => session_id)))];
});

export const inbox = forOperators((event, { state }) => {
  state.jobs.add(event, { kind: "inbox" });
  return [];
});

export const cost = forOperators((event, { state, say }) => {
  const by = event.argument === "" ? "agent" : COST_GROUPS.find((group) => group === event.argument.toLowerCase());
  if (by === undefined) return [notice(say.cost_usage)];
  state.jobs.add(event, { kind: "costs", by });
  return [];
});

/** `!fork N text` forks the session watched here; `!fork SESSION N text` any. */
export const fork = forOperators((event, { state, say }) => {
  const match = /^(?:(\S+)\s+)?(\d{1,9})(?:\s+([\s\S]+))?$/.exec(event.argument);
  if (!match) return [notice(say.fork_usage)];
  const [watched, ...others] = state.watches.in(event.room_id);
  const session = match[1] ?? (others.length === 0 ? watched?.session_id : undefined);
  if (session === undefined) return [notice(say.fork_which(others.length + (watched ? 1 : 0)))];
  state.jobs.add(event, { kind: "fork", session, iteration: Number(match[2]), text: match[3] ?? "" });
  return [];
});

export const start = forOperators((event, { state, say }) => {
  const [moniker = "", rest = ""] = splitOnce(event.argument);
  const params = paramsFrom(rest);
  if (moniker === "" || moniker.includes("=") || params === null) return [notice(say.start_usage)];
  state.jobs.add(event, { kind: "start", moniker, params });
  return [];
});

const splitOnce = (text: string): string[] => /^(\S+)(?:\s+([\s\S]*))?$/.exec(text)?.slice(1) ?? [];
