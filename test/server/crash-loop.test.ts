import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { REPOSITORY } from "../repository-files.ts";
import { Api } from "./api.ts";
import { eventually, ServerProcess, TIMEOUT } from "./server-fixture.ts";

const EVERSTEP_MONIKERS = join(REPOSITORY, "test/server/faults");

/** A session that crashes the process each time it runs, next to harmless sessions. */
async function assertHeld(environment: Record<string, string>): Promise<void> {
  await using server = await ServerProcess.start({ ...environment, EVERSTEP_MONIKERS });
  const api = new Api(server.url);
  const busy = await api.create("count", { params: { to: 1_000_000, delay_ms: 5 } });
  const resting = await api.create("joke", { params: { subject: "tea" }, options: { step_interval_ms: 3_600_000 } });
  await eventually("a joke", async () => (await api.session(resting.session_id)).iteration === 0);
  const { session_id } = await api.create("deadly");
  await api.post(`/api/sessions/${session_id}/interrupt`, { guidance: "go on" });
  for (let crash = 1; crash <= 3; crash++) {
    assert.equal((await server.ended()).signal, "SIGKILL", `crash ${crash}`);
    await server.start().catch(() => {});
  }
  await eventually("the hold", async () => (await api.session(session_id)).status === "paused");
  const held = await api.session(session_id);
  assert.deepEqual(held.pause_reason, { kind: "crashes", step_token: "0", attempts: 3 });
  assert.match(held.last_error ?? "", /^held: .* 3 times in a row/);
  assert.deepEqual(held.pending_guidance, ["go on"], "nothing is lost");
  const { text } = await api.get("/api/session-summaries?needs_person=true");
  const { sessions } = JSON.parse(text) as { sessions: { session_id: string }[] };
  assert.deepEqual(
    sessions.map((summary) => summary.session_id),
    [session_id],
    "only the one that did it is held, and a person is told",
  );
  const { iteration } = await api.session(busy.session_id);
  await eventually("the others", async () => (await api.session(busy.session_id)).iteration > iteration);
  assert.equal((await api.session(resting.session_id)).status, "running");
  const { spans } = JSON.parse((await api.get(`/api/step-spans?session_id=${busy.session_id}`)).text) as {
    spans: { crashes: number; attempts: number }[];
  };
  const crashed = spans.filter(({ crashes }) => crashes > 0);
  assert.ok(crashed.length >= 1, "steps that were under way say that their process died");
  assert.ok(
    crashed.every(({ crashes, attempts }) => attempts > crashes && crashes <= 3),
    JSON.stringify(crashed),
  );

  await api.post(`/api/sessions/${session_id}/interrupt`, { guidance: "be kind" });
  await api.post(`/api/sessions/${session_id}/resume`);
  await eventually("the answer", async () => (await api.session(session_id)).iteration === 0);
  const calm = await api.session(session_id);
  assert.deepEqual([calm.status, calm.pause_reason, calm.started_attempt], ["waiting", null, null]);
}

describe("a session that was running at three crashes in a row is held", () => {
  test("on the embedded store", TIMEOUT, () => assertHeld({}));
});

await onPostgres(() => {
  test("a session that was taken over at the same step three times is held", TIMEOUT, async () => {
    const home = await postgresHome();
    await assertHeld({ EVERSTEP_STORE: home.url });
    await home.remove();
  });
});
