import type { Question } from "../state/dialogs.ts";

/** A message to a room. Notices are the bot's own words; other bots do not answer them. */
export type OutgoingMessage = {
  kind: "message";
  text: string;
  /** False for the agent's answers. */
  is_notice: boolean;
  /** The event it replies to. */
  reply_to?: string;
};

/** A message that waits for one of a few answers. */
export type OutgoingUI = {
  kind: "ui";
  text: string;
  /** What can be typed, and its effect. */
  choices: { command: string; effect: string }[];
  question: Question;
  /** The question it replaces, if that is no longer open. */
  superseded?: Question | null;
};

export type Outgoing = OutgoingMessage | OutgoingUI;

export const notice = (text: string): OutgoingMessage => ({ kind: "message", text, is_notice: true });

export const textOf = (outgoing: Outgoing): string =>
  outgoing.kind === "message"
    ? outgoing.text
    : `${outgoing.text}\n\n${outgoing.choices.map(({ command, effect }) => `- \`${command}\`: ${effect}`).join("\n")}`;
