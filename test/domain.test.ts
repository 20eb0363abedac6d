import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Action, actionSchema, byUrgencyThenArrival } from "../src/domain/action.ts";
import { ACTION_TYPES, carriesGuidance } from "../src/domain/action-type.ts";
import { ERROR_CODES, EverstepError } from "../src/domain/errors.ts";
import { idSchema, newId, now, timeSchema } from "../src/domain/ids.ts";
import { copyJson, isObject, type JsonObject, parseDefensively } from "../src/domain/json.ts";
import { isFinal } from "../src/domain/receipt.ts";
import { changeStatus, isLive, retrySchema, SESSION_STATUSES, sessionOptionsSchema } from "../src/domain/session.ts";
import { frameOutSchema } from "../src/domain/step-frame.ts";
import { VERSION } from "../src/domain/version.ts";
import { REPOSITORY } from "./repository-files.ts";
import { aSession } from "./store/fixtures.ts";

const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown): boolean =>
  schema.safeParse(value).success;

describe("ids", () => {
  const ALLOWED: Record<string, string> = {
    "one character": "a",
    "200 characters": "x".repeat(200),
    "200 characters of four-byte emoji": "🦜".repeat(100),
    "a family emoji": "👩‍👩‍👧‍👦",
    "right-to-left text": "سلام-שלום",
    "right-to-left marks": "\u200F\u202Eabc",
    quotes: `it's "quoted" \`so\``,
    "SQL and percent signs": "'; DROP TABLE agent_steps; -- %",
    "a space": " ",
    "a backslash and a slash": "a\\b/../c",
    "a name that objects have": "__proto__",
  };
  for (const [what, id] of Object.entries(ALLOWED)) {
    test(`${what} may be an id`, () => assert.equal(idSchema.parse(id), id));
  }

  const REFUSED: Record<string, unknown> = {
    "an empty text": "",
    "201 characters": "x".repeat(201),
    "a zero character": "a\u0000b",
    "a line break": "a\nb",
    "a line break at the end": "ab\n",
    "a tab": "a\tb",
    "the separator of units": "a\u001Fb",
    delete: "a\u007Fb",
    "a control character beyond ASCII": "a\u0085b",
    "the first half of a surrogate pair": "a\uD83E",
    "the second half of a surrogate pair": "\uDD9Ca",
    "the halves in the wrong order": "\uDD9C\uD83E",
    "a number": 7,
    null: null,
  };
  for (const [what, id] of Object.entries(REFUSED)) {
    test(`${what} may not be an id`, () => assert.equal(accepts(idSchema, id), false));
  }

  test("new ids sort in the order they were minted, also within a millisecond", () => {
    const minted = Array.from({ length: 5_000 }, newId);
    assert.deepEqual(minted.toSorted(), minted);
    assert.equal(new Set(minted).size, minted.length);
    assert.ok(minted.every((id) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id)));
    assert.ok(minted.every((id) => accepts(idSchema, id)));
  });

  test("times are UTC with milliseconds", () => {
    assert.ok(accepts(timeSchema, now()));
    for (const other of [
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:00:00.000+01:00",
      "2026-01-01",
      "2026-13-01T00:00:00.000Z",
    ]) {
      assert.equal(accepts(timeSchema, other), false, other);
    }
  });
});

describe("the status of a session", () => {
  test("that is not in the table is refused when it is set", () => {
    const done = aSession({ status: "done" });
    assert.throws(() => changeStatus(done, "running"), /from done to running/);
  });

  test("that is live is one that a restart brings back", () => {
    assert.deepEqual(SESSION_STATUSES.filter(isLive), ["running", "waiting", "paused", "stopping"]);
  });
});

describe("an action", () => {
  test("without processing is never final, whatever else it says", () => {
    for (const action_type of ACTION_TYPES) {
      for (const receipt of ["accepted", "delivered", "consumed", "bounced"] as const) {
        assert.equal(isFinal(action({ action_type, receipt })), false, `${action_type} ${receipt}`);
      }
    }
  });

  for (const action_type of ACTION_TYPES) {
    const guidance = ["agent_interrupt", "agent_input", "agent_answer"].includes(action_type);
    const processed = (fields: Partial<Action>): Action =>
      action({ action_type, processed: true, processed_at: now(), ...fields });

    test(`${action_type} ${guidance ? "carries" : "carries no"} guidance`, () => {
      assert.equal(carriesGuidance(action({ action_type })), guidance);
    });
    test(`${action_type} that was delivered is ${guidance ? "not final before a step used it" : "final"}`, () => {
      assert.equal(isFinal(processed({ outcome: "ok", receipt: "delivered" })), !guidance);
    });
    test(`${action_type} that was consumed, bounced, rejected or failed is final`, () => {
      assert.ok(isFinal(processed({ outcome: "ok", receipt: "consumed", consumed_iteration: 3 })));
      assert.ok(isFinal(processed({ outcome: "ok", receipt: "bounced", error: "the session ended first" })));
      assert.ok(isFinal(processed({ outcome: "rejected", receipt: "accepted", error: "not applicable" })));
      assert.ok(isFinal(processed({ outcome: "failed", receipt: "accepted", error: "it threw" })));
      assert.ok(isFinal(processed({ outcome: "failed", receipt: "delivered", error: "it threw" })));
    });
  }

  test("of greater urgency comes first, then the earlier one, then the lesser id", () => {
    const early = "2026-01-01T00:00:00.000Z";
    const late = "2026-01-01T00:00:00.001Z";
    const expected = [
      action({ action_id: "z", urgency: 9, created_at: late }),
      action({ action_id: "y", urgency: 1, created_at: early }),
      action({ action_id: "b", urgency: 0, created_at: early }),
      action({ action_id: "c", urgency: 0, created_at: early }),
      action({ action_id: "a", urgency: 0, created_at: late }),
    ];
    assert.deepEqual(expected.toReversed().sort(byUrgencyThenArrival), expected);
    assert.equal(
      byUrgencyThenArrival(
        action({ action_id: "a", created_at: early }),
        action({ action_id: "a", created_at: early }),
      ),
      0,
    );
  });

  test("with an urgency or a type outside the contract is refused", () => {
    assert.ok(accepts(actionSchema, action({})));
    for (const urgency of [-1, 10, 0.5])
      assert.equal(accepts(actionSchema, action({ urgency })), false, String(urgency));
    assert.equal(accepts(actionSchema, { ...action({}), action_type: "agent_explode" }), false);
    assert.equal(accepts(actionSchema, { ...action({}), payload: [] }), false);
  });
});

describe("options and frames", () => {
  test("a retry is three attempts and half a second unless said otherwise", () => {
    assert.deepEqual(retrySchema.parse({}), { max_attempts: 3, backoff_ms: 500 });
    assert.equal(accepts(retrySchema, { max_attempts: 0 }), false);
  });

  test("limits must be positive", () => {
    for (const name of ["max_steps", "max_runtime_s", "max_tokens", "step_timeout_s"]) {
      assert.ok(accepts(sessionOptionsSchema, { [name]: 1 }), name);
      assert.equal(accepts(sessionOptionsSchema, { [name]: 0 }), false, name);
    }
  });

  test("a moniker's answer needs its state as an object", () => {
    const frame = { step: "0", next_step: "1", state: {}, done: false };
    assert.ok(accepts(frameOutSchema, frame));
    for (const state of [undefined, null, [], "text"])
      assert.equal(accepts(frameOutSchema, { ...frame, state }), false);
  });
});

describe("text that may be JSON", () => {
  test("is parsed where it is JSON and kept where it is not", () => {
    assert.equal(parseDefensively(null), null);
    assert.deepEqual(parseDefensively('{"a":[1,null,"x"]}'), { a: [1, null, "x"] });
    assert.equal(parseDefensively('"quoted"'), "quoted");
    for (const text of ["", "{", "plain text", "{'a': 1}", "NaN", "undefined"])
      assert.equal(parseDefensively(text), text);
  });

  test("only objects are objects", () => {
    assert.ok(isObject({}));
    for (const other of [null, [], "text", 1, undefined]) assert.equal(isObject(other), false);
  });
});

describe("a copy of JSON", () => {
  test("is the same to the letter and shares nothing", () => {
    const text = '{"b":[1,{"x":null}],"a":"é","__proto__":{"y":[true]},"constructor":1,"0":{}}';
    const value = JSON.parse(text) as JsonObject;
    const copy = copyJson(value);
    assert.equal(JSON.stringify(copy), JSON.stringify(value));
    assert.equal(Object.getPrototypeOf(copy), Object.prototype);
    (copy["b"] as JsonObject[])[1] = { changed: true };
    Object.assign(Object.getOwnPropertyDescriptor(copy, "__proto__")?.value as object, { y: "changed" });
    assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)));
  });
});

describe("errors", () => {
  test("carry a code, a cause and a next move, and say them in the message", () => {
    const cause = new Error("EAGAIN");
    for (const code of ERROR_CODES) {
      const error = new EverstepError(code, "the folder is in use", "stop the other process", cause);
      assert.ok(error instanceof Error);
      assert.equal(error.name, "EverstepError");
      assert.equal(error.code, code);
      assert.equal(error.next, "stop the other process");
      assert.equal(error.cause, cause);
      assert.equal(error.message, `${code}: the folder is in use; stop the other process`);
    }
  });

  test("without a cause have none", () => {
    assert.equal("cause" in new EverstepError("store_closed", "closed", "open it"), false);
  });
});

function action(fields: Partial<Action>): Action {
  return {
    action_id: "action",
    created_at: "2026-01-01T00:00:00.000Z",
    action_type: "agent_pause",
    agent_id: "agent",
    session_id: "session",
    payload: {},
    metadata: {},
    urgency: 0,
    processed: false,
    processed_at: null,
    outcome: null,
    error: null,
    attempts: 0,
    run_at: null,
    receipt: "accepted",
    consumed_iteration: null,
    ...fields,
  };
}

test("the program's version is package.json's", async () => {
  const { version } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8")) as { version: string };
  assert.equal(VERSION, version);
});
