import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Action } from "../../src/domain/action.ts";
import type { Message } from "../../src/domain/conversation.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { check } from "../../torture/check.ts";
import { checkTimers } from "../../torture/checks/timers.ts";
import { type Entry, Ledger } from "../../torture/ledger.ts";
import { makePlan } from "../../torture/plan/plan.ts";
import { differences, type Rows } from "../../torture/rows.ts";
import type { GuestAnswer } from "../../torture/surroundings/guests.ts";
import { aConversation, aMessage, anAction, aSession, aStep, consumed, settled } from "../store/fixtures.ts";

const PLAN = { ...makePlan(1, 0.01, "lancedb"), agents: [] };

/** A session in a conversation that took three steps, the second with guidance. */
class Scene {
  readonly word = consumed(interrupt("a word"), 1);
  readonly birth = settled(anAction({ action_type: "agent_create", session_id: "s", payload: {} }));
  readonly steps: Step[];
  readonly session: Session;
  readonly messages: Message[];
  /** Sessions that steps started. */
  readonly others: Session[] = [aSession({ session_id: "s.1.0", spawned_by: { session_id: "s", iteration: 1 } })];
  readonly actions: Action[] = [this.birth, this.word];
  readonly entries: Entry[];
  readonly witnesses = {
    payments: ["s call 0"],
    delivered: [{ id: "d", type: "session.ended", session_id: "s", question_id: null, body: "{}" }],
    guests: [{ surface: "v1", session_id: "s", said: "1", answer: "1" }] as GuestAnswer[],
  };

  constructor() {
    const session = aSession({ session_id: "s", agent_id: "a", conversation_id: "c", params: { to: 2 } });
    this.steps = [0, 1, 2].map((n) => this.#step(session, n));
    const stands = { iteration: 2, step_token: "2", next_step_token: "3", context: { n: 2 } };
    this.session = { ...session, ...stands, status: "done" };
    this.messages = this.steps.map(({ iteration, text }) =>
      aMessage({ conversation_id: "c", sender_type: "agent", session_id: "s", iteration, text }),
    );
    const body = { agent_id: "a", moniker: "count", session_id: "s", params: {}, options: {} } as const;
    this.entries = [
      entry({ kind: "create", body, again: false, followed: false }, this.birth.action_id),
      entry({ kind: "interrupt", session_id: "s", word: "a word", mode: "next" }, this.word.action_id),
    ];
  }

  #step(session: Session, n: number): Step {
    const used = n === 1 ? { guidance: ["a word"], action_ids: [this.word.action_id] } : {};
    const tokens = { step_token: String(n), next_step_token: String(n + 1) };
    return aStep(session, {
      iteration: n,
      ...tokens,
      text: String(n),
      state: { n },
      guidance: [],
      action_ids: [],
      ...used,
    });
  }

  get rows(): Rows {
    return {
      sessions: new Map([this.session, ...this.others].map((session) => [session.session_id, session])),
      steps: new Map([["s", this.steps]]),
      actions: new Map(this.actions.map((action) => [action.action_id, action])),
      conversations: new Map([["c", aConversation({ conversation_id: "c" })]]),
      participants: new Map(),
      messages: new Map([["c", this.messages]]),
    };
  }

  get violations(): string[] {
    const ledger = new Ledger();
    for (const one of this.entries) ledger.add(one);
    return check(this.rows, ledger, PLAN, this.witnesses);
  }
}

const interrupt = (guidance: string): Action =>
  settled(anAction({ action_type: "agent_interrupt", session_id: "s", payload: { guidance } }));
const entry = (operation: Entry["operation"], action_id: string): Entry => ({
  operation,
  answer: { action_id },
  refused: null,
  doubtful: false,
});

const DAMAGES: Record<string, (scene: Scene) => unknown> = {
  "a step that is missing": ({ steps }) => steps.splice(1, 1),
  "a step that is there twice": ({ steps }) => steps.push(steps[2] as Step),
  "a last step that is lost": ({ steps, messages }) => [steps.pop(), messages.pop()],
  "a step that does not go on where the one before ended": ({ steps }) => change(steps, 2, { step_token: "x" }),
  "a state that is not the last step's": ({ session }) => Object.assign(session, { context: {} }),
  "a number that was not counted": ({ steps, messages }) => [
    change(steps, 1, { text: "7" }),
    change(messages, 1, { text: "7" }),
  ],
  "guidance in two steps": ({ steps, word }) =>
    change(steps, 2, { guidance: ["a word"], action_ids: [word.action_id] }),
  "guidance in no step": ({ steps }) => change(steps, 1, { guidance: [], action_ids: [] }),
  "guidance that changed on its way": ({ steps }) => change(steps, 1, { guidance: ["another"] }),
  "guidance that still waits": ({ session }) => Object.assign(session, { pending_guidance: ["a word"] }),
  "a receipt that names another step": ({ actions }) => change(actions, 1, { consumed_iteration: 2 }),
  "an action that never ends": ({ actions }) => change(actions, 1, { processed: false, outcome: null }),
  "an action that failed": ({ actions }) => change(actions, 1, { outcome: "failed", error: "why" }),
  "an accepted request that is lost": ({ actions }) => actions.shift(),
  "an accepted word that is lost": ({ actions, steps }) => [
    actions.pop(),
    change(steps, 1, { guidance: [], action_ids: [] }),
  ],
  "a word that was sent once and is there twice": ({ actions }) => actions.push(consumed(interrupt("a word"), 1)),
  "a session that nobody asked for": ({ entries }) => entries.shift(),
  "a message that is missing": ({ messages }) => messages.pop(),
  "a message that is there twice": ({ messages }) => messages.push(messages[0] as Message),
  "a message that nobody said": ({ messages }) =>
    messages.push(aMessage({ conversation_id: "c", sender_type: "user" })),
  "a payment that was made twice unasked": ({ witnesses }) => witnesses.payments.push("s call 0"),
  "a payment that has a result and was never made": ({ steps }) =>
    change(steps, 1, {
      calls: [{ kind: "tool", name: "counter/pay", input: {}, output: "paid s call 1", latency_ms: 1 }],
    }),
  "an end that nobody was told of": ({ witnesses }) => witnesses.delivered.splice(0),
  "a delivery with two bodies": ({ witnesses }) =>
    witnesses.delivered.push({ id: "d", type: "session.ended", session_id: "s", question_id: null, body: "[]" }),
  "an answer to a guest that no step said": ({ witnesses }) => change(witnesses.guests, 0, { answer: "x" }),
  "a guest's session that is lost": ({ witnesses }) => change(witnesses.guests, 0, { session_id: "x" }),
  "an end that was told twice": ({ steps }) => {
    const child = { child: { session_id: "c" } };
    change(steps, 2, { guidance: [child, child], action_ids: [] });
  },
  "a child of a step that is not there": ({ others }) =>
    change(others, 0, { spawned_by: { session_id: "s", iteration: 7 } }),
  "steps while the session was paused": ({ actions, steps }) => {
    actions.push(
      settled(anAction({ action_type: "agent_pause", session_id: "s" }), { processed_at: "2000-01-01T00:00:00.000Z" }),
    );
    return steps;
  },
};

function change<Row>(rows: Row[], at: number, changes: Partial<Row>): void {
  rows[at] = { ...(rows[at] as Row), ...changes };
}

describe("the checker of the torture", () => {
  test("finds nothing wrong where nothing is", () => assert.deepEqual(new Scene().violations, []));

  for (const [what, damage] of Object.entries(DAMAGES))
    test(`finds ${what}`, () => {
      const scene = new Scene();
      damage(scene);
      assert.notDeepEqual(scene.violations, []);
    });

  test("finds a row that is not the same in the store as over HTTP", () => {
    const [one, other] = [new Scene().rows, new Scene().rows];
    assert.deepEqual(differences(one, one), []);
    assert.notDeepEqual(differences(one, other), []);
  });
});

describe("the checker of timers", () => {
  const timerViolations = (...fired: { fired: number; due: string; at: string }[]): string[] => {
    const session = aSession({ session_id: "t", moniker: "timers", params: { times: 2 }, status: "done" });
    const steps = fired.map((data, iteration) => aStep(session, { iteration, data }));
    const rows = { ...new Scene().rows, sessions: new Map([["t", session]]), steps: new Map([["t", steps]]) };
    return checkTimers(rows);
  };
  const [one, two] = [1, 2].map((n) => ({ fired: n, due: `2026-01-01T00:00:0${n}Z`, at: `2026-01-01T00:00:0${n}Z` }));

  test("finds one that fired early, twice or never, and nothing else", () => {
    assert.ok(one && two);
    assert.deepEqual(timerViolations(one, two), []);
    assert.equal(timerViolations(one, { ...two, at: one.at }).length, 1);
    assert.notDeepEqual(timerViolations(one, one, two), []);
    assert.equal(timerViolations(one).length, 1);
  });
});

describe("the plan of the torture", () => {
  test("is the same for the same seed and another for another", () => {
    assert.deepEqual(makePlan(7, 0.5, "postgres"), makePlan(7, 0.5, "postgres"));
    assert.notDeepEqual(makePlan(7, 0.5, "postgres"), makePlan(8, 0.5, "postgres"));
  });
});
