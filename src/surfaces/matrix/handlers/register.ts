import type { MatrixConfig } from "../config.ts";
import { Dispatcher } from "../events/dispatcher.ts";
import type { IncomingCommand } from "../events/incoming.ts";
import { notice } from "../outgoing/outgoing.ts";
import { contextSummary, help, settings, unknownCommand } from "./about.ts";
import { edited, no, reacted, yes } from "./confirm.ts";
import type { Handler } from "./handler.ts";
import { load, more } from "./load.ts";
import { message } from "./message.ts";
import { reset } from "./reset.ts";
import { save } from "./save.ts";
import { agents, answer, cost, destroy, fork, guide, inbox, pause, resume, start, watch } from "./session-commands.ts";

type UnknownCommands = MatrixConfig["MATRIX_UNKNOWN_COMMANDS"];

const newRoom: Handler<IncomingCommand> = (event, { state }) => {
  state.jobs.add(event, { kind: "new_room", name: event.argument });
  return [];
};

const stop: Handler<IncomingCommand> = (event, { state }) => {
  state.jobs.add(event, { kind: "stop" });
  return [];
};

/** With `agent`, an unknown `!word` is ordinary text, unless it addresses the bot by name. */
const unknownTo =
  (whom: UnknownCommands): Handler<IncomingCommand> =>
  (event, context) =>
    whom === "agent" && !event.is_addressed
      ? message({ ...event, kind: "message" }, context)
      : [notice(unknownCommand(event.name, event.user_id, context))];

export function registeredHandlers({ unknown_commands }: { unknown_commands: UnknownCommands }): Dispatcher {
  const dispatcher = new Dispatcher();
  const commands = {
    save,
    load,
    more,
    reset,
    context: contextSummary,
    new: newRoom,
    settings,
    help,
    yes,
    no,
    cancel: no,
    stop,
  };
  const forOperators = { agents, inbox, start, watch, guide, answer, fork, pause, resume, destroy, cost };
  for (const [name, handler] of Object.entries({ ...commands, ...forOperators }))
    dispatcher.register("command", name, handler);
  dispatcher.register("message", message);
  dispatcher.register("unknown_command", unknownTo(unknown_commands));
  dispatcher.register("callback", "confirm", reacted);
  dispatcher.register("callback", "edit", edited);
  return dispatcher;
}
