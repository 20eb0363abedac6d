import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SubmitOutcome } from "../../../src/actions/action-queue.ts";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";

/** A request that must be refused, the kind of refusal, and the field that it names. */
type Refused = [claim: string, request: unknown, kind: Exclude<SubmitOutcome["kind"], "accepted">, path?: string];

const create = (payload: object, more: object = {}): object => ({
  action_type: "agent_create",
  agent_id: "a",
  payload,
  ...more,
});
const LONG_ID = "x".repeat(201);

const REFUSED_ANYWHERE: Refused[] = [
  ["no request at all", undefined, "invalid"],
  ["a request that is a list", [], "invalid"],
  ["a request without a type", { session_id: "s" }, "invalid", "action_type"],
  ["an action type that is not there", { action_type: "agent_fly", session_id: "s" }, "invalid", "action_type"],
  ["an urgency of 10", create({ moniker: "count", params: { to: 1 } }, { urgency: 10 }), "invalid", "urgency"],
  ["an urgency of -1", create({ moniker: "count", params: { to: 1 } }, { urgency: -1 }), "invalid", "urgency"],
  ["an urgency of 1.5", create({ moniker: "count", params: { to: 1 } }, { urgency: 1.5 }), "invalid", "urgency"],
  ["a payload that is a list", { action_type: "agent_pause", session_id: "s", payload: [] }, "invalid", "payload"],
  ["metadata that is text", create({ moniker: "echo" }, { metadata: "x" }), "invalid", "metadata"],
  ["an empty id", create({ moniker: "echo" }, { session_id: "" }), "invalid", "session_id"],
  ["an id of 201 characters", create({ moniker: "echo" }, { session_id: LONG_ID }), "invalid", "session_id"],
  ["an id with a control character", create({ moniker: "echo" }, { session_id: "a\u0000b" }), "invalid", "session_id"],
];

const REFUSED_CREATIONS: Refused[] = [
  ["without an agent", { action_type: "agent_create", payload: { moniker: "echo" } }, "invalid", "agent_id"],
  ["without a moniker", create({}), "invalid", "moniker"],
  ["of an unknown moniker", create({ moniker: "nobody" }), "invalid", "moniker"],
  ["of a moniker that is a number", create({ moniker: 7 }), "invalid", "payload.moniker"],
  ["without a required parameter", create({ moniker: "count" }), "invalid", "params.to"],
  ["with a parameter of the wrong type", create({ moniker: "count", params: { to: "9" } }), "invalid", "params.to"],
  ["with parameters that are text", create({ moniker: "echo", params: "x" }), "invalid", "payload.params"],
  ["with max_steps 0", create({ moniker: "echo", options: { max_steps: 0 } }), "invalid", "payload.options.max_steps"],
  [
    "with no attempts",
    create({ moniker: "echo", options: { retry: { max_attempts: 0 } } }),
    "invalid",
    "payload.options.retry.max_attempts",
  ],
  [
    "with a timeout that is text",
    create({ moniker: "echo", options: { step_timeout_s: "1" } }),
    "invalid",
    "payload.options.step_timeout_s",
  ],
  ["in an unknown conversation", create({ moniker: "echo", conversation_id: "nowhere" }), "unknown"],
];

const CONTROLS = ["agent_pause", "agent_resume", "agent_destroy"];
const refusedControls = (session_id: string): Refused[] => [
  ...[...CONTROLS, "agent_interrupt", "agent_input", "agent_fork"].flatMap((action_type): Refused[] => {
    const payload = { guidance: "x", iteration: 0 };
    return [
      [`${action_type} of an unknown session`, { action_type, session_id: "nobody", payload }, "unknown"],
      [`${action_type} of an unknown agent`, { action_type, agent_id: "nobody", payload }, "unknown"],
      [`${action_type} of nothing at all`, { action_type, payload }, "unknown"],
      [`${action_type} of another agent's session`, { action_type, session_id, agent_id: "other", payload }, "unknown"],
    ];
  }),
  ...CONTROLS.flatMap((action_type): Refused[] => [
    [
      `${action_type} with a reason that is a number`,
      { action_type, session_id, payload: { reason: 1 } },
      "invalid",
      "payload.reason",
    ],
  ]),
  ["an interrupt without guidance", { action_type: "agent_interrupt", session_id }, "invalid", "payload.guidance"],
  [
    "an interrupt with a mode that is not there",
    { action_type: "agent_interrupt", session_id, payload: { guidance: "x", mode: "soon" } },
    "invalid",
    "payload.mode",
  ],
  [
    "an input with a mode that is not there",
    { action_type: "agent_input", session_id, payload: { text: "x", mode: 1 } },
    "invalid",
    "payload.mode",
  ],
  ["a fork without an iteration", { action_type: "agent_fork", session_id }, "invalid", "payload.iteration"],
  ...[-1, 1.5, "0", null].map(
    (iteration): Refused => [
      `a fork from iteration ${JSON.stringify(iteration)}`,
      { action_type: "agent_fork", session_id, payload: { iteration } },
      "invalid",
      "payload.iteration",
    ],
  ),
  [
    "a fork from an iteration that is not there yet",
    { action_type: "agent_fork", session_id, payload: { iteration: 0 } },
    "invalid",
    "iteration",
  ],
  [
    "a fork with an id that is too long",
    { action_type: "agent_fork", session_id, payload: { iteration: 0, session_id: LONG_ID } },
    "invalid",
    "payload.session_id",
  ],
];

/** An invalid request is refused at once, and nothing of it is written. */
export function submission(makeHome: MakeHome): void {
  describe("submit refuses", () => {
    const world = sharedWorld(makeHome);

    for (const refused of REFUSED_ANYWHERE) test(refused[0], TIMEOUT, () => refuses(world(), refused));
    for (const refused of REFUSED_CREATIONS) test(`a creation ${refused[0]}`, TIMEOUT, () => refuses(world(), refused));
    for (const index of refusedControls("").keys()) {
      const [claim] = refusedControls("")[index] as Refused;
      test(claim, TIMEOUT, async () => {
        const session_id = await world().create("held_reactive", { session_id: "known", agent_id: "known" });
        await refuses(world(), refusedControls(session_id)[index] as Refused);
      });
    }
  });
}

async function refuses({ runtime, store }: World, [, request, kind, path]: Refused): Promise<void> {
  const written = async () => [
    await store.listActions({ limit: 500, offset: 0 }).then((actions) => actions.map(({ action_id }) => action_id)),
    await store.listSessions({ limit: 500, offset: 0 }).then((sessions) => sessions.map((row) => row.session_id)),
  ];
  const before = await written();
  const outcome = await runtime.queue.submit(request);
  assert.equal(outcome.kind, kind, JSON.stringify(outcome));
  assert.deepEqual(await written(), before, "nothing is enqueued");
  if (outcome.kind !== "invalid") return;
  for (const error of outcome.errors) assert.ok(error.message.length > 0);
  if (path !== undefined)
    assert.ok(
      outcome.errors.some((error) => error.path === path),
      JSON.stringify(outcome.errors),
    );
}
