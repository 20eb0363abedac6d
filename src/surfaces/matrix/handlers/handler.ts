import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Incoming, Origin } from "../events/incoming.ts";
import type { Outgoing } from "../outgoing/outgoing.ts";
import type { AgentStatus } from "../platform/platform-client.ts";
import type { BotState } from "../state/bot-state.ts";

/** What a handler may use. It runs inside the transaction that marks its event as done, with everything it writes and says. */
export type HandlerContext = {
  state: BotState;
  /** The bot's texts in the person's language. */
  say: Catalogue;
  agent_status: () => AgentStatus;
  isOperator: (user_id: string) => boolean;
};

/** Turns an event into messages to its room. Work that takes time becomes a job. */
export type Handler<Event extends Origin = Incoming> = (event: Event, context: HandlerContext) => Outgoing[];
