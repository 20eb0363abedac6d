import type { IncomingMessage } from "../events/incoming.ts";
import { contentOf } from "../outgoing/content.ts";
import { notice, type Outgoing } from "../outgoing/outgoing.ts";
import { isAgentJob } from "../state/jobs.ts";
import { answerInWords } from "./confirm.ts";
import type { Handler, HandlerContext } from "./handler.ts";
import { pickLoad } from "./load.ts";

const LONGEST_QUOTE = 1000;
const isNumber = (text: string): boolean => /^\d{1,6}$/.test(text);

/** A question for the agent, unless it is the number that the person was asked for. */
export const message: Handler<IncomingMessage> = (event, context) => {
  const { state, say } = context;
  if (!event.is_text) return [notice(say.text_only)];
  if (event.text === "") return [];
  const answered = answerInWords(event, event.text, context);
  if (answered) return answered;
  const dialog = state.dialogs.current(event);
  if (dialog?.question.kind === "load" && isNumber(event.text))
    return pickLoad(Number(event.text), dialog.question, event, context);
  // It was meant for a list that a newer question replaced, and would confuse the agent.
  if (dialog?.before?.kind === "load" && isNumber(event.text)) return [notice(say.wants_yes_or_no(dialog.question))];
  return ask(event, context);
};

function ask(event: IncomingMessage, { state, say, agent_status }: HandlerContext): Outgoing[] {
  const ahead = state.jobs.open().filter(isAgentJob);
  const position = state.jobs.add(event, { kind: "ask", text: withQuote(event, quotedText(event, state)) });
  const isAway = agent_status() === "away";
  if (ahead.length === 0 && !isAway) return [];
  // A person is told once that questions are queued, not for each further one.
  const isTold = ahead.some(
    (job) => job.user_id === event.user_id && job.room_id === event.room_id && job.notice !== null,
  );
  if (isTold) return [];
  const text = isAway ? say.agent_away : say.queued(ahead.length);
  const content = contentOf(text, { is_notice: true, reply_to: event.event_id });
  state.jobs.setNotice(position, state.outbox.add(event.room_id, content, { rank: "preview", thread: event.thread }));
  return [];
}

/** What the message replied to said: as the client quotes it, or as stored here. */
function quotedText({ replied_to, quoted }: IncomingMessage, state: HandlerContext["state"]): string | null {
  if (quoted !== null || replied_to === null) return quoted;
  const body = state.outbox.findByEvent(replied_to)?.content.body ?? state.inbox.find(replied_to)?.content["body"];
  return typeof body === "string" ? body : null;
}

function withQuote({ text }: IncomingMessage, quoted: string | null): string {
  if (quoted === null || quoted === "") return text;
  const short = quoted.length > LONGEST_QUOTE ? `${quoted.slice(0, LONGEST_QUOTE)}…` : quoted;
  return `${short.replaceAll(/^/gm, "> ")}\n\n${text}`.toWellFormed();
}
