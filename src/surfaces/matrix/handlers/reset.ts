import type { IncomingCommand } from "../events/incoming.ts";
import type { Handler } from "./handler.ts";

export const reset: Handler<IncomingCommand> = (_event, { state, say }) => [
  {
    kind: "ui",
    text: say.reset_question(state.chat.of(null).name),
    choices: [
      { command: "!yes", effect: say.effects.do_it },
      { command: "!save name", effect: say.effects.save_first },
      { command: "!no", effect: say.effects.leave },
    ],
    question: { kind: "reset" },
  },
];
