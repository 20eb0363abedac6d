import { io } from "socket.io-client";
import type { Action } from "../../../src/domain/action.ts";
import type { Message } from "../../../src/domain/conversation.ts";
import type { Session } from "../../../src/domain/session.ts";
import type { SessionSummary } from "../../../src/domain/session-summary.ts";
import type { Step } from "../../../src/domain/step.ts";
import { Signal } from "./signal.ts";
import { currentToken, tokenNeeded, tokenRefused } from "./token.ts";

export type StepDelta = { session_id: string; iteration: number; event_seq: number; text: string; tool?: string };
export type MessageDelta = StepDelta & { conversation_id: string };

type Events = {
  agent_step: Step;
  agent_state_update: Session;
  agent_step_delta: StepDelta;
  action_update: Action;
  conversation_message: Message;
  conversation_message_delta: MessageDelta;
  session_summaries: { sessions: SessionSummary[] };
};
type Handlers = { [Name in keyof Events]?: (payload: Events[Name]) => void };
type Topic =
  | { session_id: string; after_iteration?: number }
  | { conversation_id: string; after?: string }
  | { summaries: true };

/** `lost`: it was connected before. Missed rows arrive once it is back. */
export const connection = new Signal<"connecting" | "connected" | "lost">("connecting");

const socket = io({
  autoConnect: false,
  transports: ["websocket", "polling"],
  auth: (give) => give({ token: currentToken() ?? undefined }),
  reconnectionDelay: 250,
  reconnectionDelayMax: 2000,
});

type Following = { topic: () => Topic; onFollowed: () => void };
const followed = new Set<Following>();
const subscribe = ({ topic, onFollowed }: Following): void => void socket.emit("subscribe", topic(), onFollowed);

socket.on("connect", () => {
  connection.set("connected");
  for (const following of followed) subscribe(following);
});
socket.on("disconnect", () => connection.set("lost"));
socket.on("connect_error", (error: Error & { data?: { status?: number } }) => {
  if (error.data?.status === 401) tokenRefused();
  else if (connection.value === "connected") connection.set("lost");
});
tokenNeeded.listen(() => {
  if (!tokenNeeded.value) socket.disconnect().connect();
});

export const connect = (): void => void socket.connect();

/**
 * Subscribes to a topic. `topic` is called again after every reconnection, so that its cursor covers what was missed. Rows that
 * change have no cursor: read them again in `onFollowed`.
 */
export function follow(topic: () => Topic, handlers: Handlers, onFollowed = () => {}): () => void {
  const entries = Object.entries(handlers) as [keyof Events, (payload: unknown) => void][];
  for (const [name, handler] of entries) socket.on(name, handler);
  const following = { topic, onFollowed };
  followed.add(following);
  if (socket.connected) subscribe(following);
  return () => {
    for (const [name, handler] of entries) socket.off(name, handler);
    followed.delete(following);
    if (socket.connected) socket.emit("unsubscribe", topic());
  };
}
