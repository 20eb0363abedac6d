import { nearestWord } from "../../../domain/nearest-word.ts";
import { catalogue, LANGUAGES } from "../catalogue/catalogue.ts";
import type { IncomingCommand } from "../events/incoming.ts";
import { notice } from "../outgoing/outgoing.ts";
import type { Handler, HandlerContext } from "./handler.ts";

const OPERATOR_COMMANDS = new Set([
  "agents",
  "inbox",
  "start",
  "watch",
  "guide",
  "answer",
  "fork",
  "pause",
  "resume",
  "destroy",
  "cost",
]);

export const contextSummary: Handler<IncomingCommand> = (event, { state }) => {
  state.jobs.add(event, { kind: "context" });
  return [];
};

export function unknownCommand(name: string, user_id: string, { say, isOperator }: HandlerContext): string {
  const names = Object.keys(say.help.commands).filter(
    (command) => isOperator(user_id) || !OPERATOR_COMMANDS.has(command),
  );
  return say.unknown_command(name, nearestWord(name, names) ?? null);
}

export const help: Handler<IncomingCommand> = ({ argument, user_id }, context) => {
  const { say, isOperator } = context;
  const { commands, title, operators, more } = say.help;
  const topic = argument.replace(/^!/, "").toLowerCase();
  if (topic !== "") {
    const entry = Object.hasOwn(commands, topic) ? commands[topic] : undefined;
    return [notice(entry ? `\`${entry.usage}\`: ${entry.about}` : unknownCommand(topic, user_id, context))];
  }
  const list = (forOperators: boolean): string =>
    Object.entries(commands)
      .filter(([name]) => OPERATOR_COMMANDS.has(name) === forOperators)
      .map(([, { usage, about }]) => `- \`${usage}\`: ${about}`)
      .join("\n");
  const parts = [title, list(false), ...(isOperator(user_id) ? [operators, list(true)] : []), more];
  return [notice(parts.join("\n\n"))];
};

export const settings: Handler<IncomingCommand> = ({ argument, user_id }, { state, say }) => {
  const current = state.people.settings(user_id);
  if (argument === "") return [notice(say.settings(current))];
  const [name, value = ""] = argument.toLowerCase().split(/[\s=]+/);
  const language = LANGUAGES.find((code) => code === value);
  if (name === "language" && language) {
    state.people.change(user_id, { ...current, language });
    return [notice(catalogue(language).settings({ ...current, language }))];
  }
  if (name === "streaming" && (value === "on" || value === "off")) {
    const changed = { ...current, streaming: value === "on" };
    state.people.change(user_id, changed);
    return [notice(say.settings(changed))];
  }
  return [notice(say.settings_usage)];
};
