import { catalogue, LANGUAGES } from "../catalogue/catalogue.ts";
import type { IncomingCommand } from "../events/incoming.ts";
import { notice } from "../outgoing/outgoing.ts";
import { isAgentJob } from "../state/jobs.ts";
import type { Handler } from "./handler.ts";

const OPERATOR_COMMANDS = new Set(["agents", "watch", "guide", "answer", "pause", "resume", "destroy"]);

/** From what is known here, without a call to the agent. */
export const context: Handler<IncomingCommand> = (event, { state, say, agent_status }) => [
  notice(
    say.context({
      name: state.keyValues.get("context_name"),
      status: agent_status(),
      waiting: state.jobs.open().filter((job) => isAgentJob(job) && job.state === "queued").length,
      tokens_last: state.keyValues.number("tokens_last"),
      tokens_total: state.keyValues.number("tokens_total"),
      saves: state.saves.of(event.user_id),
    }),
  ),
];

export const help: Handler<IncomingCommand> = ({ argument, user_id }, { say, isOperator }) => {
  const { commands, title, operators, more } = say.help;
  const asked = argument.replace(/^!/, "").toLowerCase();
  if (asked !== "") {
    const found = Object.hasOwn(commands, asked) ? commands[asked] : undefined;
    return [notice(found ? `\`${found.usage}\`: ${found.about}` : say.unknown_command(asked))];
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
  const language = LANGUAGES.find((known) => known === value);
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
