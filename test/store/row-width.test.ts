import assert from "node:assert/strict";
import { test } from "node:test";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { EMBEDDED_TABLES, pack, unpack } from "../../src/store/embedded/tables.ts";
import { aQuestion, aSession, aStep, aTime } from "./fixtures.ts";

const widthOf = ({ row }: { row: string }): number => (JSON.parse(row) as unknown[]).length;

function storedAndRead(table: "agent_state" | "agent_steps", row: Session | Step, own = {}) {
  const packed = pack(EMBEDDED_TABLES, table, row, own);
  const { values } = unpack(EMBEDDED_TABLES, table, packed.row, [7]);
  return { width: widthOf(packed), row: EMBEDDED_TABLES.toPort(table, values) as Record<string, unknown> };
}

test("a session that never waited, asked or spent anything stores no column for it, and reads as it was", () => {
  const { params: _, context: __, ...session } = aSession();
  const read = storedAndRead("agent_state", aSession(session), { base_iteration: 3, error_rows: 0, spawner_id: null });
  assert.deepEqual(read.row, session);
  assert.equal(EMBEDDED_TABLES.columns.agent_state[read.width - 1]?.name, "error_rows");
});

test("a step without calls, costs or directives stores no column for them, and reads as it was", () => {
  const { state: _, ...step } = aStep(aSession());
  const stored = { state: "{}", state_kind: "whole", base_iteration: 0 };
  const read = storedAndRead("agent_steps", { ...step, state: {} }, stored);
  assert.deepEqual(read.row, step);
  assert.equal(EMBEDDED_TABLES.columns.agent_steps[read.width - 1]?.name, "action_ids");
});

test("whichever of the later columns a row uses comes back, and so do those before it", () => {
  const used: Partial<Session>[] = [
    { pause_reason: { kind: "person" } },
    { started_attempt: { iteration: 4, attempts: 1 } },
    { question: aQuestion("really?") },
    { wake_at: aTime() },
    { rests_since: aTime() },
    { spawned_by: { session_id: "parent", iteration: 0 } },
    { retry_at: aTime() },
    { cost_usd: 0.25 },
    { step_started_at: aTime() },
  ];
  for (const fields of used) {
    const { params: _, context: __, ...session } = aSession(fields);
    assert.deepEqual(storedAndRead("agent_state", aSession(session)).row, session);
  }
  for (const fields of [{ attempts: 2 }, { cost_usd: 1 }, { moniker_version: "v" }, { directives: { once: true } }]) {
    const { state: _, ...step } = aStep(aSession(), fields);
    assert.deepEqual(storedAndRead("agent_steps", { ...step, state: {} }).row, step);
  }
});
