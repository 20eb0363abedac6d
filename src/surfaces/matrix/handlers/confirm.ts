import type { IncomingCallback, IncomingCommand, Origin } from "../events/incoming.ts";
import { notice, type Outgoing } from "../outgoing/outgoing.ts";
import type { Question } from "../state/dialogs.ts";
import type { Task } from "../state/jobs.ts";
import type { SessionQuestion } from "../state/session-questions.ts";
import type { Handler, HandlerContext } from "./handler.ts";

/** `!yes` answers the one question that is open for this person in this room, always the newest; as a reply, the session's question it replies to. */
export const yes: Handler<IncomingCommand> = (event, context) =>
  answerTo(event, "yes", context) ?? agree(event, context);
export const no: Handler<IncomingCommand> = (event, context) =>
  answerTo(event, "no", context) ?? decline(event, context);

/** A reaction counts on the open question itself, or on a session's question that it can answer. */
export const reacted: Handler<IncomingCallback> = (event, context) => {
  if (event.action !== "confirm") return [];
  const { state } = context;
  const message = state.outbox.findByEvent(event.target);
  if (!message) return [];
  const question = state.session_questions.find(message.transaction_id);
  if (question) return choose(event, { question, answer: event.answer, receipt_on: event.target }, context);
  if (message.transaction_id !== state.dialogs.current(event)?.transaction_id) return [];
  if (typeof event.answer === "number") return [];
  return event.answer === "yes" ? agree(event, context) : decline(event, context);
};

/** A reply to a session's question is its answer; null if it is no such reply. */
export function answerInWords(event: Replying, text: string, context: HandlerContext): Outgoing[] | null {
  const question = questionOf(event, context);
  if (!question) return null;
  const { state, say, isOperator } = context;
  if (!isOperator(event.user_id)) return [notice(say.operators_only)];
  const { session_id: session, question_id } = question;
  state.jobs.add(event, { kind: "answer", session, text, question_id });
  return [];
}

type Replying = Origin & Pick<IncomingCommand, "replied_to">;
type Choice = { question: SessionQuestion; answer: "yes" | "no" | number; receipt_on: string };

function questionOf({ replied_to }: Replying, { state }: HandlerContext): SessionQuestion | null {
  const message = replied_to === null ? null : state.outbox.findByEvent(replied_to);
  return message && state.session_questions.find(message.transaction_id);
}

/** `!yes` or `!no` as a reply: what the thumb means, otherwise the word itself. */
function answerTo(event: IncomingCommand, answer: "yes" | "no", context: HandlerContext): Outgoing[] | null {
  const question = questionOf(event, context);
  if (!question) return null;
  if (question.thumbs === null) return answerInWords(event, answer, context);
  return choose(event, { question, answer, receipt_on: event.event_id }, context);
}

function choose(
  event: Origin,
  { question, answer, receipt_on }: Choice,
  { state, say, isOperator }: HandlerContext,
): Outgoing[] {
  const { session_id: session, question_id, choices, thumbs } = question;
  const choice = typeof answer === "number" ? choices?.[answer - 1] : thumbs?.[answer === "yes" ? 0 : 1];
  if (choice === undefined) return [];
  if (!isOperator(event.user_id)) return [notice(say.operators_only)];
  state.jobs.add(event, { kind: "answer", session, choice, question_id, receipt_on });
  return [];
}

/** Editing a queued question changes it; other edits are ignored. */
export const edited: Handler<IncomingCallback> = (event, { state }) => {
  if (event.action === "edit" && event.text !== "") state.jobs.reword(event.target, event.user_id, event.text);
  return [];
};

function agree(event: Origin, { state, say, isOperator }: HandlerContext): Outgoing[] {
  const question = state.dialogs.current(event)?.question;
  if (!question) return [notice(say.nothing_waiting)];
  const task = taskOf(question);
  // A list needs a number, not a yes.
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
