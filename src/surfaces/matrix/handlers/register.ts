import { Dispatcher } from "../events/dispatcher.ts";
import type { IncomingCommand } from "../events/incoming.ts";
import { context, help, settings } from "./about.ts";
import { edited, no, reacted, yes } from "./confirm.ts";
import type { Handler } from "./handler.ts";
import { load, more } from "./load.ts";
import { message } from "./message.ts";
import { reset } from "./reset.ts";
import { save } from "./save.ts";
import { agents, answer, destroy, guide, pause, resume, watch } from "./session-commands.ts";

const newRoom: Handler<IncomingCommand> = (event, { state }) => {
  state.jobs.add(event, { kind: "new_room", name: event.argument });
  return [];
};

const stop: Handler<IncomingCommand> = (event, { state }) => {
  state.jobs.add(event, { kind: "stop" });
  return [];
};

export function registeredHandlers(): Dispatcher {
  const dispatcher = new Dispatcher();
  const commands = { save, load, more, reset, context, new: newRoom, settings, help, yes, no, cancel: no, stop };
  const forOperators = { agents, watch, guide, answer, pause, resume, destroy };
  for (const [name, handler] of Object.entries({ ...commands, ...forOperators }))
    dispatcher.register("command", name, handler);
  dispatcher.register("message", message);
  dispatcher.register("callback", "confirm", reacted);
  dispatcher.register("callback", "edit", edited);
  return dispatcher;
}
