import type { Question } from "../state/dialogs.ts";
import type { Catalogue } from "./catalogue.ts";
import { choiceLines } from "./choice-lines.ts";
import { day, englishHelp } from "./english-help.ts";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
const DONE = { pause: "paused", resume: "resumed", destroy: "ended" } as const;
const STATUS = { ready: "ready", busy: "busy with an answer", away: "cannot be reached" } as const;

export const english: Catalogue = {
  welcome: "Hello. What you write here goes to the agent; `!help` lists what else I can do.",
  encrypted:
    "This room is encrypted, and I cannot read encrypted messages. Please make a room without encryption and invite me there.",
  undecryptable:
    "I do not have the key for this message and perhaps for others after it. Please send it again; if that does not help, log out and in on your device.",
  text_only: "I can only read text.",
  unknown_command: (name) => `I know no command \`!${name}\`. \`!help\` lists those that I know.`,
  queued: (ahead) =>
    `Queued: ${plural(ahead, "question is", "questions are")} ahead of yours. Everything is answered in turn.`,
  agent_away: "The agent cannot be reached right now. Your question is kept and answered as soon as it is back.",
  agent_failed: (reason) => `The agent could not answer: ${reason}`,
  agent_silent: "The agent answered with nothing.",
  undeliverable: "An answer was ready, but the homeserver refused to take it.",
  set_aside: (reason) =>
    `I failed at this several times and set it aside (${reason}). Please ask again in other words.`,
  missed: "The homeserver does not tell me all that was said here. Please repeat what I did not answer.",

  name_rule:
    "That name cannot be used: a name has 1 to 64 letters, digits, `-` and `_`, and begins with a letter or a digit.",
  overwrite: (name, saved_at, isOwn) =>
    `${isOwn ? "You have" : "Somebody else has"} saved \`${name}\` on ${day(saved_at)}. Shall it be overwritten?`,
  saved: (name) => `Saved as \`${name}\`.`,
  save_failed: (name, reason) => `\`${name}\` was not saved. The agent said: ${reason}`,
  save_failed_no_reset: "Nothing was reset.",

  load_none: "You have saved nothing yet. `!save name` does.",
  load_list: (lines, total) =>
    `Your saved contexts (${lines[0]?.number}–${lines.at(-1)?.number} of ${total}):\n\n${lines
      .map(({ number, name, saved_at }) => `${number}\\. \`${name}\` (${day(saved_at)})`)
      .join("\n")}`,
  load_no_more: "There is no list with more pages open. `!load` opens one.",
  load_out_of_range: (number, total) => `There is no number ${number}. Choose 1 to ${total}; 0 leaves.`,
  load_unknown: (name) => `You have saved nothing named \`${name}\`. \`!load\` lists what you have.`,
  loaded: (name) => `Loaded \`${name}\`.`,
  load_failed: (name, reason) => `\`${name}\` was not loaded. The agent said: ${reason}`,

  reset_question: (name) =>
    `The agent will forget this conversation, for everyone who talks to it${name === null ? "" : ` (context \`${name}\`)`}. What is saved stays. Shall it?`,
  reset_outcome(outcome) {
    switch (outcome.kind) {
      case "reset":
        return "The agent starts afresh.";
      case "missing":
        return "This agent cannot be reset from here: it has no reset endpoint. Ask its administrator. Nothing was lost.";
      case "timeout":
        return "The agent did not answer the reset in time. Nothing was lost; try again later.";
      case "refused":
        return `The agent refused the reset (${outcome.reason}). Nothing was lost.`;
    }
    return outcome satisfies never;
  },
  destroy_question: (session_id) => `Session \`${session_id}\` will end for good. Shall it?`,
  superseded: (question) => `(My earlier question, ${about(question)}, is off the table.)`,
  nothing_waiting: "Nothing is waiting for an answer.",
  left: "Left as it is.",
  effects: {
    do_it: "do it",
    save_first: "save first, then do it",
    leave: "leave it",
    pick: "the number of the one to load",
    more: "the next page",
  },

  context: ({ name, status, waiting, tokens_last, tokens_total, saves }) =>
    [
      `**Context:** ${name === null ? "not saved yet" : `\`${name}\``}`,
      `**Agent:** ${STATUS[status]}${waiting > 0 ? `, ${plural(waiting, "question", "questions")} waiting` : ""}`,
      `**Tokens:** ${tokens_last} for the last answer, ${tokens_total} in total`,
      `**Your saves:** ${saves.length === 0 ? "none" : saves.map((save) => `\`${save.name}\` (${day(save.saved_at)})`).join(", ")}`,
    ].join("\n"),
  new_room: (link) => `I made a room and invited you: ${link}`,
  new_room_failed: (reason) => `The room could not be made: ${reason}`,
  room_topic: "Everything said here goes to the agent.",
  settings: ({ language, streaming }) =>
    `**Language:** ${language} (\`!settings language en\` or \`ru\`)\n**Streaming:** ${streaming ? "on" : "off"} (\`!settings streaming on\` or \`off\`)`,
  settings_usage: "Say `!settings language en|ru` or `!settings streaming on|off`.",
  stopped: "*(stopped)*",
  nothing_to_stop: "No answer is under way in this room.",

  operators_only: "Only operators may do that.",
  runtime_unreachable: (reason) => `The runtime did not do it: ${reason}`,
  agents: (lines) =>
    lines.length === 0
      ? "There are no agents."
      : lines
          .map(
            ({ agent_id, moniker, status, steps, session_id }) =>
              `- **${agent_id}** (${moniker}): ${status}, ${plural(steps, "step", "steps")}, session \`${session_id}\``,
          )
          .join("\n"),
  session_missing: (command) => `Which session? \`!${command} SESSION\`; \`!agents\` lists them.`,
  session_unknown: (session) => `No session is named \`${session}\`. \`!agents\` lists them.`,
  session_ambiguous: (session, count) => `${count} sessions begin with \`${session}\`. Give more of the name.`,
  watching: (session_id) => `Watching \`${session_id}\`. \`!watch off\` ends it.`,
  watch_over: (session_id, status) => `\`${session_id}\` is ${status}.`,
  watch_stopped: (session_ids) =>
    session_ids.length === 0
      ? "Nothing is watched here."
      : `No longer watching ${session_ids.map((id) => `\`${id}\``).join(", ")}.`,
  step: (session_id, iteration, text) => `**${session_id} #${iteration}** ${text}`,
  guided: (session_id) => `\`${session_id}\` has it and uses it in its next step.`,
  text_missing: (command) => `Say \`!${command} SESSION text\`.`,
  asks: (session_id, question) =>
    [
      `**${session_id} asks:** ${question.text}`,
      ...choiceLines(question),
      question.choices?.length === 2
        ? `👍 is 1, 👎 is 2; or say \`!answer ${session_id} …\`.`
        : `Say \`!answer ${session_id} …\`${question.choices ? " with a number" : ""}.`,
    ].join("\n"),
  asks_nothing: (session_id) => `\`${session_id}\` does not ask that any more.`,
  answered: (session_id) => `\`${session_id}\` has the answer.`,
  controlled: (verb, session_id) => `\`${session_id}\` is ${DONE[verb]}.`,
  control_rejected: (verb, session_id, reason) => `\`${session_id}\` was not ${DONE[verb]}: ${reason}`,

  help: englishHelp,
};

function about(question: Question): string {
  switch (question.kind) {
    case "reset":
      return "whether to reset";
    case "overwrite":
      return `whether to overwrite \`${question.name}\``;
    case "load":
      return "what to load";
    case "destroy":
      return `whether to end \`${question.session}\``;
  }
  return question satisfies never;
}
