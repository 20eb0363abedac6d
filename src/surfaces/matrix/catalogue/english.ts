import type { Question as SessionAsk } from "../../../domain/question.ts";
import { isStoppedByLimit, type Session, type SessionStatus } from "../../../domain/session.ts";
import type { Question } from "../state/dialogs.ts";
import type { Catalogue } from "./catalogue.ts";
import { askedCall, choiceLines, detailLines } from "./choice-lines.ts";
import { day, englishHelp } from "./english-help.ts";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
const DONE = { pause: "paused", resume: "resumed", destroy: "ended" } as const;
const STATUS = {
  ready: "ready",
  busy: "busy with an answer",
  asks: "waiting for an answer to its question",
  paused: "paused; the next question resumes it",
  failed: "failed; the next question tries again",
  away: "cannot be reached",
} as const;
const SESSION_STATUS: Record<SessionStatus, string> = {
  running: "is running",
  waiting: "is waiting",
  paused: "is paused",
  stopping: "is stopping",
  stopped: "is stopped",
  done: "is done",
  error: "has failed",
};
const names = (list: string[]): string => (list.length === 0 ? "none" : list.map((name) => `\`${name}\``).join(", "));

export const english: Catalogue = {
  welcome: "Hello. Everything you write here goes to the agent; `!help` lists what else I can do.",
  encrypted:
    "This room is encrypted, and I cannot read encrypted messages. Please create a room without encryption and invite me there.",
  undecryptable:
    "I do not have the key for this message and perhaps for others after it. Please send it again; if that does not help, log out and in on your device.",
  verification: (emoji) => `Please compare with what your client shows: ${emoji}`,
  text_only: "I can only read text.",
  unknown_command: (name, nearest) =>
    `There is no command \`!${name}\`.${nearest === null ? "" : ` Did you mean \`!${nearest}\`?`} \`!help\` lists all commands.`,
  queued: (ahead) =>
    `Queued: ${plural(ahead, "question is", "questions are")} ahead of yours. Everything is answered in turn.`,
  agent_away:
    "The agent cannot be reached right now. Your question is kept and will be answered as soon as the agent is back.",
  agent_failed: (reason) => `The agent could not answer: ${reason}`,
  agent_silent: "The agent gave an empty answer.",
  undeliverable: "An answer was ready, but the homeserver refused to take it.",
  set_aside: (reason) =>
    `I failed at this several times and set it aside (${reason}). Please ask again in other words.`,
  missed: "I could not get all messages of this room from the homeserver. Please repeat what I have not answered.",

  name_rule:
    "That name cannot be used: a name has 1 to 64 letters, digits, `-` and `_`, and begins with a letter or a digit.",
  overwrite: (name, saved_at, isOwn) =>
    `${isOwn ? "You" : "Somebody else"} saved \`${name}\` on ${day(saved_at)}. Overwrite it?`,
  saved: (name) => `Saved as \`${name}\`.`,
  save_failed: (name, reason) => `\`${name}\` was not saved. The agent said: ${reason}`,
  save_failed_no_reset: "Nothing was reset.",

  load_none: "You have no saved contexts yet. `!save name` saves one.",
  load_list: (lines, total) =>
    `Your saved contexts (${lines[0]?.number}–${lines.at(-1)?.number} of ${total}):\n\n${lines
      .map(({ number, name, saved_at }) => `${number}. \`${name}\` (${day(saved_at)})`)
      .join("\n")}`,
  load_no_more: "No list with more pages is open. `!load` opens one.",
  load_out_of_range: (number, total) => `There is no number ${number}. Choose 1 to ${total}, or 0 to cancel.`,
  load_unknown: (name) => `You have no saved context named \`${name}\`. \`!load\` lists yours.`,
  loaded: (name) => `Loaded \`${name}\`.`,
  load_failed: (name, reason) => `\`${name}\` was not loaded. The agent said: ${reason}`,

  reset_question: (name) =>
    `The agent will forget this conversation, for everyone who talks to it${name === null ? "" : ` (saved last as \`${name}\`)`}. Saved contexts stay. Reset it?`,
  reset_in_thread: "This thread is a conversation of its own. For a fresh one, start another thread.",
  reset_outcome(outcome) {
    switch (outcome.kind) {
      case "reset":
        return "Done: the agent starts afresh.";
      case "missing":
        return "This agent cannot be reset from here: it has no reset endpoint. Ask its administrator. Nothing was lost.";
      case "timeout":
        return "The agent did not answer the reset in time. Nothing was lost; try again later.";
      case "refused":
        return `The agent refused the reset (${outcome.reason}). Nothing was lost.`;
    }
    return outcome satisfies never;
  },
  destroy_question: (session_id) => `Session \`${session_id}\` will end for good. End it?`,
  superseded: (question) => `(My earlier question, ${about(question)}, no longer applies.)`,
  nothing_waiting: "Nothing is waiting for an answer.",
  wants_number: (question) => `My last question was ${about(question)}: answer with a number, or 0 to cancel.`,
  wants_yes_or_no: (question) => `My last question was ${about(question)}: answer \`!yes\` or \`!no\`.`,
  left(question) {
    switch (question.kind) {
      case "reset":
        return "Cancelled: nothing was reset.";
      case "overwrite":
        return `Cancelled: \`${question.name}\` was not overwritten.`;
      case "load":
        return "Cancelled: nothing was loaded.";
      case "destroy":
        return `Cancelled: \`${question.session}\` goes on.`;
    }
    return question satisfies never;
  },
  effects: {
    do_it: "do it",
    save_command: "!save name",
    save_first: "save first, then do it",
    leave: "cancel",
    pick: "the number of the context to load",
    more: "the next page",
  },

  context: ({ name, loaded, status, error, waiting, tokens_last, tokens_total, saves }) =>
    [
      `**Context:** ${name === null ? "not saved yet" : `saved last as \`${name}\``}`,
      `**Loaded:** ${names(loaded)}`,
      `**Agent:** ${STATUS[status]}${error === null ? "" : ` (${error})`}${waiting > 0 ? `, ${plural(waiting, "question", "questions")} waiting` : ""}`,
      `**Tokens:** ${tokens_last} for the last answer, ${tokens_total} in total`,
      `**Your saves:** ${saves.length === 0 ? "none" : saves.map((save) => `\`${save.name}\` (${day(save.saved_at)})`).join(", ")}`,
    ].join("\n"),
  new_room: (link) => `I created a room and invited you: ${link}`,
  new_room_failed: (reason) => `The room could not be created: ${reason}`,
  room_topic: "Everything said here goes to the agent.",
  settings: ({ language, streaming }) =>
    `**Language:** ${language} (\`!settings language en\` or \`ru\`)\n**Streaming:** ${streaming ? "on" : "off"} (\`!settings streaming on\` or \`off\`)`,
  settings_usage: "Use `!settings language en|ru` or `!settings streaming on|off`.",
  stopped: "*(stopped)*",
  nothing_to_stop: "No answer is under way in this room.",

  operators_only: "Only operators may do that.",
  runtime_unreachable: (reason) => `That did not work: ${reason}`,
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
  session_unknown: (session) => `There is no session \`${session}\`. \`!agents\` lists them.`,
  session_ambiguous: (session, count) =>
    `The ids of ${count} sessions begin with \`${session}\`. Please give more of the id.`,
  watching: (session_id) => `Watching \`${session_id}\`. \`!watch off\` ends it.`,
  watch_refused: (session_id, reason) => `I cannot watch \`${session_id}\`: ${reason}`,
  watch_over: (session_id, status) => `\`${session_id}\` ${SESSION_STATUS[status]}.`,
  watch_stopped: (session_ids) =>
    session_ids.length === 0
      ? "Nothing is watched here."
      : `No longer watching ${session_ids.map((id) => `\`${id}\``).join(", ")}.`,
  step: (session_id, iteration, text) => `**${session_id} #${iteration}** ${text}`,
  text_missing: (command) => `Use \`!${command} SESSION text\`.`,
  asks: (session_id, question, has_thumbs) =>
    [
      `**${session_id}** ${askedText(question)}`,
      ...detailLines(question),
      choiceLines(question).join("\n"),
      has_thumbs
        ? "Reply with a number, or react with 👍 or 👎."
        : `Reply to this message${question.choices ? " with a number" : ""}.`,
    ]
      .filter((part) => part !== "")
      .join("\n\n"),
  asks_nothing: (session_id) => `\`${session_id}\` no longer asks that.`,
  receipt: (iteration) => (iteration === null ? "✅" : `✅ step ${iteration}`),
  inbox_empty: "Nothing needs you.",
  inbox: (sessions) => sessions.map(needOf).join("\n"),
  start_usage: "Use `!start MONIKER key=value …`.",
  started: (session_id) => `Started \`${session_id}\`; I show its steps here. \`!watch off\` ends that.`,
  fork_usage: "Use `!fork N text` for the session watched here, or `!fork SESSION N text`; N is the number of a step.",
  fork_which: (watched) =>
    `${watched === 0 ? "No session is watched here" : `${watched} sessions are watched here`}. Use \`!fork SESSION N text\`.`,
  forked: (session_id, iteration, forked_id) =>
    `\`${forked_id}\` continues \`${session_id}\` from step ${iteration}; I show its steps here. \`!watch off\` ends that.`,
  cost_usage: "Use `!cost`, or `!cost agent`, `!cost model`, `!cost day`.",
  costs: ({ since, total, groups }) =>
    [
      `**$${total.cost_usd.toFixed(4)}** since ${day(since)}: ${plural(total.sessions, "session", "sessions")}, ${plural(total.tokens_used, "token", "tokens")}`,
      groups
        .slice(0, 10)
        .map(
          ({ key, cost_usd, tokens_used }) =>
            `- ${key ?? "(none)"}: $${cost_usd.toFixed(4)}, ${plural(tokens_used, "token", "tokens")}`,
        )
        .join("\n"),
    ]
      .filter((part) => part !== "")
      .join("\n\n"),
  controlled: (verb, session_id) => `\`${session_id}\` is ${DONE[verb]}.`,
  control_rejected: (verb, session_id, reason) => `\`${session_id}\` was not ${DONE[verb]}: ${reason}`,

  help: englishHelp,
};

function askedText(question: SessionAsk): string {
  const call = askedCall(question);
  if (!call) return `**asks:** ${question.text}`;
  switch (call.kind) {
    case "tool":
      return `**wants to run** \`${call.tool}\` with:`;
    case "in_doubt":
      return `**was interrupted** while it ran \`${call.tool}\`, which may have happened or not. It was called with:`;
  }
  return call.kind satisfies never;
}

function needOf(session: Session): string {
  const { session_id, agent_id, status, question, last_error, stop_reason } = session;
  const title = `- **${agent_id}**, \`${session_id}\`:`;
  if (question) return `${title} asks: ${question.text} (\`!answer ${session_id} …\`)`;
  if (isStoppedByLimit(session)) return `${title} stopped: it reached ${stop_reason}`;
  const next = `\`!resume ${session_id}\``;
  return status === "error"
    ? `${title} failed: ${last_error ?? "no reason given"} (${next})`
    : `${title} held (${next})`;
}

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
