import { ClientError } from "../../../client/client.ts";
import type { SessionFollower } from "./platform-client.ts";
import type { RuntimeHttp } from "./runtime-http.ts";

type WatchTarget = { http: RuntimeHttp; session_id: string; after_iteration: number };

/** Follows a session until it ends: missed steps come first, after a lost connection too. */
export function watchSession(
  { http, session_id, after_iteration }: WatchTarget,
  follower: SessionFollower,
): Disposable {
  const leaving = new AbortController();
  const { signal } = leaving;
  const follow = async (): Promise<void> => {
    // Before its first step a session is at -1, and so is whoever wants to see its last step too.
    const options = { after: Math.max(after_iteration, -1), until_ended: true, wait_for_server: true, signal };
    for await (const event of http.events(session_id, options)) {
      if (signal.aborted) return;
      if (event.type === "agent_step" && event.data.session_id === session_id) follower.step(event.data);
      if (event.type !== "agent_state_update") continue;
      const { status, question, ended_at } = event.data;
      if (ended_at !== null) follower.ended(status);
      else follower.asks(question);
    }
  };
  follow().catch((error: unknown) => {
    if (!signal.aborted) follower.refused(error instanceof ClientError ? error.what : String(error));
  });
  return { [Symbol.dispose]: () => leaving.abort() };
}
