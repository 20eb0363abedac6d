import { safeName } from "../../../agent-api/context-prompts.ts";
import type { IncomingCommand } from "../events/incoming.ts";
import { notice } from "../outgoing/outgoing.ts";
import type { Handler } from "./handler.ts";

/** `context-YYYYMMDD-HHMMSS`: when the command was sent, in UTC. */
const automaticName = (sent_at: number): string =>
  `context-${new Date(sent_at).toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-")}`;

/** Has the agent save. In answer to a reset question it saves first and resets only if that succeeded. */
export const save: Handler<IncomingCommand> = (event, { state, say }) => {
  const name = event.argument || automaticName(event.sent_at);
  if (safeName(name) !== null) return [notice(say.name_rule)];
  const question = state.dialogs.current(event)?.question;
  const then_reset = question?.kind === "reset" || (question?.kind === "overwrite" && question.then_reset);
  const existing = state.saves.named(name, event.user_id);
  if (existing)
    return [
      {
        kind: "ui",
        text: say.overwrite(name, existing.saved_at, existing.user_id === event.user_id),
        choices: [
          { command: "!yes", effect: say.effects.do_it },
          { command: "!no", effect: say.effects.leave },
        ],
        question: { kind: "overwrite", name, then_reset },
      },
    ];
  if (then_reset) state.dialogs.close(event);
  state.jobs.add(event, { kind: "save", name, then_reset });
  return [];
};
