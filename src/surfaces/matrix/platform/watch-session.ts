import { io } from "socket.io-client";
import { isLive, type Session } from "../../../domain/session.ts";
import type { Step } from "../../../domain/step.ts";
import type { SessionFollower } from "./platform-client.ts";

export type WatchTarget = {
  base_url: string;
  token: string | undefined;
  session_id: string;
  after_iteration: number;
  /** The session as it is now: it may have ended while nobody looked. */
  look: () => Promise<Session | undefined>;
};

/** Follows a session over Socket.IO: what was missed comes first, also after the connection was lost. */
export function watchSession(target: WatchTarget, follower: SessionFollower): Disposable {
  const { base_url, token, session_id, after_iteration, look } = target;
  const socket = io(base_url, { auth: token === undefined ? {} : { token }, transports: ["websocket"] });
  let last = after_iteration;
  let ended: Session | null = null;
  const endWhenOver = (): void => {
    if (ended && last >= ended.iteration) follower.ended(ended.status);
  };
  const consider = (session: Session | undefined): void => {
    if (session?.session_id !== session_id) return;
    if (session.question !== null && isLive(session.status)) follower.asks(session.question);
    if (isLive(session.status)) return;
    ended = session;
    endWhenOver();
  };
  socket.on("connect", () => {
    socket.emit("subscribe", { session_id, after_iteration: last });
    // Where it cannot be told, the next connection tells.
    look().then(consider, () => {});
  });
  socket.on("agent_step", (step: Step) => {
    if (step.session_id !== session_id || (step.status === "ok" && step.iteration <= last)) return;
    if (step.status === "ok") last = step.iteration;
    follower.step(step);
    endWhenOver();
  });
  socket.on("agent_state_update", consider);
  return { [Symbol.dispose]: () => void socket.disconnect() };
}
