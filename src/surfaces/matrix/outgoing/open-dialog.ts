import type { Catalogue } from "../catalogue/catalogue.ts";
import type { BotState } from "../state/bot-state.ts";
import type { Place } from "../state/dialogs.ts";
import { type OutgoingUI, textOf } from "./outgoing.ts";
import { splitContent } from "./split-content.ts";

/** Asks a person in a room, and says which earlier question it replaces. */
export function openDialog(
  state: BotState,
  say: Catalogue,
  place: Place & { thread: string | null },
  dialog: OutgoingUI,
): void {
  const { superseded = state.dialogs.current(place)?.question ?? null } = dialog;
  const text = superseded === null ? textOf(dialog) : `${say.superseded(superseded)}\n\n${textOf(dialog)}`;
  const [first = ""] = splitContent(text, { is_notice: true }).map((content) =>
    state.outbox.add(place.room_id, content, { thread: place.thread }),
  );
  state.dialogs.open(place, dialog.question, first, superseded);
}
