import type { JsonValue } from "../../../domain/json.ts";
import type { IncomingCallback, IncomingCommand, Origin } from "../events/incoming.ts";
import { notice, type Outgoing } from "../outgoing/outgoing.ts";
import type { Question } from "../state/dialogs.ts";
import type { Task } from "../state/jobs.ts";
import type { SessionQuestion } from "../state/session-questions.ts";
import type { Handler, HandlerContext } from "./handler.ts";

/** `!yes` means the one question that is open for this person in this room, and that is always the newest. */
export const yes: Handler<IncomingCommand> = (event, context) => agree(event, context);
export const no: Handler<IncomingCommand> = (event, context) => decline(event, context);

/** A reaction counts where it stands on the open question itself, or on a session's question of two choices. */
export const reacted: Handler<IncomingCallback> = (event, context) => {
  if (event.action !== "confirm") return [];
  const asked = context.state.outbox.findByEvent(event.target);
  if (!asked) return [];
  const question = context.state.session_questions.find(asked.transaction_id);
  if (question) return choose(event, question, event.answer, context);
  if (asked.transaction_id !== context.state.dialogs.current(event)?.transaction_id) return [];
  return event.answer === "yes" ? agree(event, context) : decline(event, context);
};

/** The first choice for a yes, the second for a no. */
function choose(
  event: Origin,
  { session_id, question_id, choices }: SessionQuestion,
  reaction: "yes" | "no",
  { state, say, isOperator }: HandlerContext,
): Outgoing[] {
  if (choices?.length !== 2) return [];
  if (!isOperator(event.user_id)) return [notice(say.operators_only)];
  const choice = choices[reaction === "yes" ? 0 : 1] as JsonValue;
  state.jobs.add(event, { kind: "answer", session: session_id, choice, question_id });
  return [];
}

/** An edit of a question that waits changes what will be asked; any other is left alone. */
export const edited: Handler<IncomingCallback> = (event, { state }) => {
  if (event.action === "edit" && event.text !== "") state.jobs.reword(event.target, event.user_id, event.text);
  return [];
};

function agree(event: Origin, { state, say, isOperator }: HandlerContext): Outgoing[] {
  const question = state.dialogs.current(event)?.question;
  if (!question) return [notice(say.nothing_waiting)];
  const task = taskOf(question);
  // A list wants a number, not a yes.
  if (!task) return [notice(say.wants_number(question))];
  state.dialogs.close(event);
  if (question.kind === "destroy" && !isOperator(event.user_id)) return [notice(say.operators_only)];
  state.jobs.add(event, task);
  return [];
}

function decline(event: Origin, { state, say }: HandlerContext): Outgoing[] {
  const question = state.dialogs.current(event)?.question;
  if (!question) return [notice(say.nothing_waiting)];
  state.dialogs.close(event);
  return [notice(say.left(question))];
}

function taskOf(question: Question): Task | null {
  switch (question.kind) {
    case "reset":
      return { kind: "reset" };
    case "overwrite":
      return { kind: "save", name: question.name, then_reset: question.then_reset };
    case "destroy":
      return { kind: "control", verb: "destroy", session: question.session };
    case "load":
      return null;
  }
  return question satisfies never;
}
