import type { IncomingCommand } from "../events/incoming.ts";
import { notice, type OutgoingUI } from "../outgoing/outgoing.ts";
import type { Handler } from "./handler.ts";

export const reset: Handler<IncomingCommand> = ({ chat }, { state, say }) => {
  if (chat !== null) return [notice(say.reset_in_thread)];
  const dialog: OutgoingUI = {
    kind: "ui",
    text: say.reset_question(state.chat(null).of(null).name),
    choices: [
      { command: "!yes", effect: say.effects.do_it },
      { command: say.effects.save_command, effect: say.effects.save_first },
      { command: "!no", effect: say.effects.leave },
    ],
    question: { kind: "reset" },
  };
  return [dialog];
};
