import type { Question } from "../state/dialogs.ts";

/** A message to a room. Notices are what the bot says of itself; other bots do not answer them. */
export type OutgoingMessage = {
  kind: "message";
  text: string;
  /** False for the agent's own words. */
  is_notice: boolean;
  /** The event that it answers. */
  reply_to?: string;
};

/** A message that waits for one of a few answers. */
export type OutgoingUI = {
  kind: "ui";
  text: string;
  /** What can be typed, and what that does. */
  choices: { command: string; effect: string }[];
  question: Question;
  /** The question whose place it takes, where that is no longer open. */
  superseded?: Question | null;
};

export type Outgoing = OutgoingMessage | OutgoingUI;

export const notice = (text: string): OutgoingMessage => ({ kind: "message", text, is_notice: true });

export const textOf = (outgoing: Outgoing): string =>
  outgoing.kind === "message"
    ? outgoing.text
    : `${outgoing.text}\n\n${outgoing.choices.map(({ command, effect }) => `- \`${command}\`: ${effect}`).join("\n")}`;
