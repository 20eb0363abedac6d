import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { z } from "zod";
import { newSession } from "../../src/actions/new-session.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Moniker } from "../../src/monikers/moniker.ts";
import { runStep, type StepEnvironment } from "../../src/sessions/run-step.ts";

const endless: Moniker = {
  name: "endless",
  kind: "finite",
  description: "Never returns.",
  params: z.looseObject({}),
  step: () => new Promise(() => {}),
};

function sessionOf(options: Session["options"]): Session {
  const made = newSession({ agent_id: "a", session_id: "s", moniker: "endless", options }, null, {
    catalog: new Map([["endless", endless]]),
  });
  assert.equal(made.kind, "session");
  return (made as { session: Session }).session;
}

const environment = {
  llm: () => null,
  tools: () => ({}),
  watch: () => () => {},
  onOutput() {},
} as unknown as StepEnvironment;

for (const [what, options, seconds] of [
  ["600 seconds where its session says nothing", {}, 600],
  ["as long as its session says", { step_timeout_s: 7200 }, 7200],
] as const)
  test(`a step may take ${what}`, async () => {
    mock.timers.enable({ apis: ["setTimeout"] });
    try {
      const { outcome } = runStep(sessionOf(options), endless, environment);
      let isOver = false;
      void outcome.then(() => {
        isOver = true;
      });
      // The limit is set once the step has run for a while.
      mock.timers.tick(200);
      mock.timers.tick(seconds * 1000 - 201);
      await new Promise(setImmediate);
      assert.equal(isOver, false, "a millisecond before");
      mock.timers.tick(1);
      const ended = await outcome;
      assert.ok(ended.kind === "failed");
      assert.match(String(ended.error), new RegExp(`took longer than ${seconds} s`));
    } finally {
      mock.timers.reset();
    }
  });
