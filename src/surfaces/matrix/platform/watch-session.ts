import type { SessionFollower } from "./platform-client.ts";
import type { RuntimeHttp } from "./runtime-http.ts";

type WatchTarget = { http: RuntimeHttp; session_id: string; after_iteration: number };

/** Follows a session until it ends: what was missed comes first, also after the connection was lost. */
export function watchSession(
  { http, session_id, after_iteration }: WatchTarget,
  follower: SessionFollower,
): Disposable {
  const leaving = new AbortController();
  const { signal } = leaving;
  const follow = async (): Promise<void> => {
    const options = { after: after_iteration, until_ended: true, wait_for_server: true, signal };
    for await (const event of http.events(session_id, options)) {
      if (signal.aborted) return;
      if (event.type === "agent_step" && event.data.session_id === session_id) follower.step(event.data);
      if (event.type !== "agent_state_update") continue;
      const { status, question, ended_at } = event.data;
      if (ended_at !== null) follower.ended(status);
      else if (question !== null) follower.asks(question);
    }
  };
  // The server refuses to let it be followed: the session is gone, or the token is no longer right.
  follow().catch(() => {});
  return { [Symbol.dispose]: () => leaving.abort() };
}
