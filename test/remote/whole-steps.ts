import assert from "node:assert/strict";
import type { Api } from "../server/api.ts";
import { eventually } from "../server/server-fixture.ts";

/** Asserts that paused counting sessions have lost and repeated no step; resolves with the number of steps. */
export async function wholeSteps(api: Api, sessions: readonly { session_id: string }[]): Promise<number> {
  let steps = 0;
  for (const { session_id } of sessions) {
    const session = await eventually("the pause", async () => {
      const now = await api.session(session_id);
      return now.status !== "running" && now;
    });
    assert.equal(session.status, "paused", session.last_error ?? "");
    const committed = (await api.steps(session_id)).filter(({ status }) => status === "ok");
    assert.deepEqual(
      committed.map(({ iteration, text, step_token }) => [iteration, text, step_token]),
      committed.map((_, n) => [n, String(n), String(n)]),
    );
    // A step that was running at the pause may have been committed after the session was read.
    assert.ok(committed.length > session.iteration, `${committed.length} steps, up to ${session.iteration}`);
    steps += committed.length;
  }
  return steps;
}
