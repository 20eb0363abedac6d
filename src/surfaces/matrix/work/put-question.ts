import { isObject, type JsonValue } from "../../../domain/json.ts";
import type { Question } from "../../../domain/question.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { splitContent } from "../outgoing/split-content.ts";
import type { BotState } from "../state/bot-state.ts";

type Place = { state: BotState; say: Catalogue; room_id: string; thread: string | null; session_id: string };

const THUMBS = ["👍", "👎"];

/**
 * Asks a session's question in a room, as a separate message for replies and reactions, with the reactions that can be tapped.
 * Called inside the transaction that records why. Returns the transaction id of the last row.
 */
export function putQuestion({ state, say, room_id, thread, session_id }: Place, question: Question): string {
  const { question_id, choices } = question;
  const thumbs = thumbsOf(question);
  const text = say.asks(session_id, question, thumbs !== null);
  // A long question has several parts; the choices are in the last.
  const transaction_id = splitContent(text, { is_notice: true })
    .map((content) => state.outbox.add(room_id, content, { thread }))
    .at(-1) as string;
  const values = choices?.map(({ value }) => value) ?? null;
  state.session_questions.add({ transaction_id, room_id, session_id, question_id, choices: values, thumbs });
  const signs = thumbs === null ? [] : THUMBS;
  return signs.map((sign) => state.outbox.react(room_id, transaction_id, sign)).at(-1) ?? transaction_id;
}

/** Of two choices the first is the yes; for a tool call it is to run it once. */
function thumbsOf({ choices, about }: Question): [yes: JsonValue, no: JsonValue] | null {
  const values = choices?.map(({ value }) => value) ?? [];
  const isApproval = isObject(about) && about["kind"] === "tool";
  if (isApproval && values.includes("approve") && values.includes("deny")) return ["approve", "deny"];
  const [yes, no] = values;
  return values.length === 2 && yes !== undefined && no !== undefined ? [yes, no] : null;
}
