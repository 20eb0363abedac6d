import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Catalogue, catalogue, LANGUAGES } from "../../src/surfaces/matrix/catalogue/catalogue.ts";

/** Arguments for the catalogues' functions; each must occur in the resulting text. */
const TIME = "2026-04-16T12:34:56.000Z";
const ASKED = { text: "Which?", choices: null, schema: null, about: null };
const CALL = { tool: "files/delete", args: { path: "a.txt" } };
const NEEDY = { session_id: "s-1", agent_id: "joker", question: null, last_error: null, stop_reason: null };
const SAMPLES: { [Name in keyof Catalogue]?: { args: unknown[]; said: RegExp[] }[] } = {
  unknown_command: [
    { args: ["wow", null], said: [/`!wow`/] },
    { args: ["wow", "new"], said: [/`!wow`/, /`!new`/] },
  ],
  verification: [{ args: ["🐶 Dog, 🔑 Key"], said: [/🐶 Dog, 🔑 Key/] }],
  queued: [1, 2, 5, 21].map((ahead) => ({ args: [ahead], said: [new RegExp(String(ahead))] })),
  agent_failed: [{ args: ["no key"], said: [/no key/] }],
  set_aside: [{ args: ["no way"], said: [/no way/] }],
  overwrite: [true, false].map((isOwn) => ({ args: ["tea", TIME, isOwn], said: [/`tea`/, /2026/] })),
  saved: [{ args: ["tea"], said: [/`tea`/] }],
  save_failed: [{ args: ["tea", "no disk"], said: [/`tea`/, /no disk/] }],
  load_list: [{ args: [[{ number: 1, name: "tea", saved_at: TIME }], 7], said: [/`tea`/, /7/, /2026/] }],
  load_out_of_range: [{ args: [9, 7], said: [/9/, /7/] }],
  load_unknown: [{ args: ["tea"], said: [/`tea`/] }],
  loaded: [{ args: ["tea"], said: [/`tea`/] }],
  load_failed: [{ args: ["tea", "no file"], said: [/`tea`/, /no file/] }],
  reset_question: [
    { args: ["tea"], said: [/`tea`/] },
    { args: [null], said: [/\S/] },
  ],
  reset_outcome: [
    ...["reset", "missing", "timeout"].map((kind) => ({ args: [{ kind }], said: [/\S/] })),
    { args: [{ kind: "refused", reason: "not today" }], said: [/not today/] },
  ],
  destroy_question: [{ args: ["s-1"], said: [/`s-1`/] }],
  superseded: [
    { args: [{ kind: "reset" }], said: [/\S/] },
    { args: [{ kind: "overwrite", name: "tea", then_reset: false }], said: [/`tea`/] },
    { args: [{ kind: "load", names: [], page: 0 }], said: [/\S/] },
    { args: [{ kind: "destroy", session: "s-1" }], said: [/`s-1`/] },
  ],
  wants_number: [{ args: [{ kind: "load", names: [], page: 0 }], said: [/0/] }],
  wants_yes_or_no: [{ args: [{ kind: "overwrite", name: "tea", then_reset: false }], said: [/`tea`/, /`!yes`/] }],
  left: [
    { args: [{ kind: "reset" }], said: [/\S/] },
    { args: [{ kind: "overwrite", name: "tea", then_reset: false }], said: [/`tea`/] },
    { args: [{ kind: "load", names: [], page: 0 }], said: [/\S/] },
    { args: [{ kind: "destroy", session: "s-1" }], said: [/`s-1`/] },
  ],
  context: ["ready", "busy", "asks", "paused", "failed", "away"].map((status) => ({
    args: [
      {
        name: "tea",
        loaded: ["cake", "milk"],
        status,
        error: status === "failed" ? "no key" : null,
        waiting: 3,
        tokens_last: 41,
        tokens_total: 99,
        saves: [{ name: "old", saved_at: TIME }],
      },
    ],
    said: [/`tea`/, /`cake`, `milk`/, /3/, /41/, /99/, /`old`/, ...(status === "failed" ? [/no key/] : [])],
  })),
  new_room: [{ args: ["https://x"], said: [/https:\/\/x/] }],
  new_room_failed: [{ args: ["no right"], said: [/no right/] }],
  settings: [true, false].map((streaming) => ({ args: [{ language: "ru", streaming }], said: [/ru/] })),
  runtime_unreachable: [{ args: ["no way"], said: [/no way/] }],
  agents: [
    { args: [[]], said: [/\S/] },
    ...[1, 3, 11].map((steps) => ({
      args: [[{ session_id: "s-1", agent_id: "joker", moniker: "joke", status: "running", steps }]],
      said: [/`s-1`/, /joker/, /joke/, /running|работает/, new RegExp(String(steps))],
    })),
  ],
  session_missing: [{ args: ["watch"], said: [/`!watch SESSION`/] }],
  session_unknown: [{ args: ["s-1"], said: [/`s-1`/] }],
  session_ambiguous: [{ args: ["s-", 3], said: [/`s-`/, /3/] }],
  watching: [{ args: ["s-1"], said: [/`s-1`/] }],
  watch_refused: [{ args: ["s-1", "gone"], said: [/`s-1`/, /gone/] }],
  watch_over: [{ args: ["s-1", "done"], said: [/`s-1`/, /is done|выполнена/] }],
  watch_stopped: [
    { args: [[]], said: [/\S/] },
    { args: [["s-1"]], said: [/`s-1`/] },
  ],
  step: [{ args: ["s-1", 4, "a joke"], said: [/s-1/, /4/, /a joke/] }],
  text_missing: [{ args: ["answer"], said: [/`!answer SESSION /] }],
  asks: [
    {
      args: ["s-1", { ...ASKED, choices: [{ value: "a", label: "First" }, { value: 2 }] }, true],
      said: [/s-1/, /Which\?/, /1\. First\n2\. 2/, /👍/],
    },
    { args: ["s-1", { ...ASKED, choices: [{ value: "a" }] }, false], said: [/1\. a/] },
    { args: ["s-1", { ...ASKED, schema: { properties: { n: {}, why: {} } } }, false], said: [/`n=…` `why=…`/] },
    { args: ["s-1", { ...ASKED, about: { rows: 5 } }, false], said: [/Which\?/, /"rows": 5/] },
    ...["tool", "in_doubt"].map((kind) => ({
      args: ["s-1", { ...ASKED, about: { kind, ...CALL } }, false],
      said: [/`files\/delete`/, /"path": "a\.txt"/],
    })),
  ],
  asks_nothing: [{ args: ["s-1"], said: [/`s-1`/] }],
  receipt: [
    { args: [4], said: [/^✅ \S+ 4$/] },
    { args: [null], said: [/^✅$/] },
  ],
  inbox: [
    {
      args: [[{ ...NEEDY, status: "waiting", question: ASKED }]],
      said: [/joker/, /`s-1`/, /Which\?/, /`!answer s-1 …`/],
    },
    { args: [[{ ...NEEDY, status: "error", last_error: "no key" }]], said: [/no key/, /`!resume s-1`/] },
    { args: [[{ ...NEEDY, status: "paused" }]], said: [/`!resume s-1`/] },
    { args: [[{ ...NEEDY, status: "stopped", stop_reason: "max_steps" }]], said: [/max_steps/] },
  ],
  started: [{ args: ["s-1"], said: [/`s-1`/, /`!watch off`/] }],
  fork_which: [0, 3].map((watched) => ({ args: [watched], said: [/`!fork SESSION N/] })),
  forked: [{ args: ["s-1", 4, "s-2"], said: [/`s-1`/, /4/, /`s-2`/] }],
  costs: [
    {
      args: [
        {
          since: TIME,
          total: { sessions: 3, tokens_used: 99, cost_usd: 1.25 },
          groups: [{ key: "joker", sessions: 3, tokens_used: 99, cost_usd: 1.25 }],
        },
      ],
      said: [/\$1\.2500/, /2026/, /3/, /- joker: \$1\.2500, 99/],
    },
  ],
  controlled: ["pause", "resume", "destroy"].map((verb) => ({ args: [verb, "s-1"], said: [/`s-1`/] })),
  control_rejected: [{ args: ["pause", "s-1", "it ended"], said: [/`s-1`/, /it ended/] }],
};

describe("the catalogues", () => {
  const shape = (value: unknown): unknown =>
    typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shape(part)]))
      : typeof value;

  test("say the same things in every language", () => {
    for (const language of LANGUAGES) assert.deepEqual(shape(catalogue(language)), shape(catalogue("en")), language);
  });

  for (const language of LANGUAGES) {
    const words = catalogue(language);
    for (const [name, value] of Object.entries(words))
      test(`say ${name} in ${language}`, () => {
        const samples = SAMPLES[name as keyof Catalogue];
        if (typeof value === "function") assert.ok(samples, "the test has no sample for it");
        for (const { args, said } of samples ?? []) {
          const text = (value as (...parameters: unknown[]) => string)(...args);
          for (const expected of said) assert.match(text, expected);
          assert.doesNotMatch(text, /undefined|\[object|NaN/);
          assert.doesNotMatch(text, /\\/, "clients that show no formatting would show it");
          if (language === "ru" && name !== "step" && text !== "✅") assert.match(text, /[а-яё]/i);
        }
        for (const text of texts(value)) {
          assert.notEqual(text.trim(), "");
          const isWord = !text.startsWith("!");
          if (language === "ru" && isWord) assert.match(text, /[а-яё]/i);
          if (language === "en") assert.doesNotMatch(text, /[а-яё]/i);
        }
      });
  }
});

function texts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(texts) : [];
}
