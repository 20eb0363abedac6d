import type { IncomingCommand, Origin } from "../events/incoming.ts";
import { notice, type Outgoing } from "../outgoing/outgoing.ts";
import type { Question } from "../state/dialogs.ts";
import type { Handler, HandlerContext } from "./handler.ts";

const PAGE = 10;
type LoadQuestion = Extract<Question, { kind: "load" }>;

export const load: Handler<IncomingCommand> = (event, context) => {
  const { state, say } = context;
  const saves = state.saves.of(event.user_id);
  const adds = event.argument.startsWith("+");
  const name = adds ? event.argument.slice(1).trim() : event.argument;
  if (name !== "") {
    if (!saves.some((own) => own.name === name)) return [notice(say.load_unknown(name))];
    state.jobs.add(event, { kind: "load", name, adds });
    return [];
  }
  if (saves.length === 0) return [notice(say.load_none)];
  return [page({ kind: "load", names: saves.map((own) => own.name), page: 0, adds }, event, context)];
};

export const more: Handler<IncomingCommand> = (event, context) => {
  const question = context.state.dialogs.current(event)?.question;
  if (question?.kind !== "load" || (question.page + 1) * PAGE >= question.names.length)
    return [notice(context.say.load_no_more)];
  // It is the same list, so nothing is superseded.
  context.state.dialogs.close(event);
  return [page({ ...question, page: question.page + 1 }, event, context)];
};

/** The numbers remain those of the list as shown, whatever is saved meanwhile. */
export function pickLoad(
  number: number,
  question: LoadQuestion,
  event: Origin,
  { state, say }: HandlerContext,
): Outgoing[] {
  const { names, adds = false } = question;
  const name = names[number - 1];
  if (number !== 0 && name === undefined) return [notice(say.load_out_of_range(number, names.length))];
  state.dialogs.close(event);
  if (name === undefined) return [notice(say.left(question))];
  state.jobs.add(event, { kind: "load", name, adds });
  return [];
}

function page(question: LoadQuestion, { user_id }: Origin, { state, say }: HandlerContext): Outgoing {
  const first = question.page * PAGE;
  const times = new Map(state.saves.of(user_id).map(({ name, saved_at }) => [name, saved_at]));
  const lines = question.names
    .slice(first, first + PAGE)
    .map((name, index) => ({ number: first + index + 1, name, saved_at: times.get(name) ?? "" }));
  const hasMore = first + PAGE < question.names.length;
  return {
    kind: "ui",
    text: say.load_list(lines, question.names.length),
    choices: [
      { command: `1…${question.names.length}`, effect: say.effects.pick },
      ...(hasMore ? [{ command: "!more", effect: say.effects.more }] : []),
      { command: "0", effect: say.effects.leave },
    ],
    question,
  };
}
