import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Incoming, Origin } from "../events/incoming.ts";
import type { Outgoing } from "../outgoing/outgoing.ts";
import type { AgentStatus } from "../platform/platform-client.ts";
import type { BotState } from "../state/bot-state.ts";

/** What a handler may use. It runs inside one transaction: what it writes, what it says and the event's end are one. */
export type HandlerContext = {
  state: BotState;
  /** The bot's words in the person's language. */
  say: Catalogue;
  agent_status: () => AgentStatus;
  isOperator: (user_id: string) => boolean;
};

/** Turns an event into what is said to its room. Work that takes time becomes a job. */
export type Handler<Event extends Origin = Incoming> = (event: Event, context: HandlerContext) => Outgoing[];
