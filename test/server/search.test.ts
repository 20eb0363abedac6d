import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { listOf, pathOf, type Query, read, SHAPES } from "./api.ts";
import { TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld();

const TEXTS = [
  "The quick brown fox jumps over the lazy dog",
  "A fox, a fox and again a fox",
  "Быстрая коричневая лиса и ёжик в тумане",
  "Ёлки зелёные",
  "Le naïveté du café crème",
  "Ångström, Zürich and façade",
  "Ο γρήγορος αλεπού",
  "東京 タワー",
  "it's 100% don't'; DROP TABLE steps; --",
  "numbers 42 and 3.14",
];

/** A query, and the texts it finds, by their index above. */
const QUESTIONS: [q: string, indices: number[]][] = [
  ["fox", [0, 1]],
  ["FOX", [0, 1]],
  ["quick fox", [0]],
  ["fox quick", [0]],
  ["fo", []],
  ["wolf", []],
  ["лиса", [2]],
  ["ЛИСА", [2]],
  ["ежик", [2]],
  ["ёжик", [2]],
  ["елки", [3]],
  ["naivete", [4]],
  ["naïveté", [4]],
  ["cafe creme", [4]],
  ["angstrom zurich", [5]],
  ["Façade", [5]],
  ["γρηγορος", [6]],
  ["東京", [7]],
  ["100%", [8]],
  ["drop table", [8]],
  ["42", [9]],
  ["!!! ...", []],
  ["fox'; DROP TABLE agent_steps; --", []],
  ['" OR 1=1', []],
  ["fox*", [0, 1]],
  ["+fox -quick", [0]],
  ["x".repeat(1000), []],
];

describe("GET /api/search", () => {
  const ids = { session_id: "", agent_id: "searched", conversation_id: "" };
  const hits = async (query: Query) =>
    read(await world().api.get("/api/search", query), 200, listOf("hits", SHAPES.hit))["hits"] ?? [];
  /** Writes the texts twice: as the steps of an agent, and as a person's messages. */
  before(async () => {
    const { api } = world();
    const frames = TEXTS.map((text) => ({ text }));
    ids.session_id = (await api.create("script", { agent_id: ids.agent_id, params: { frames } })).session_id;
    await world().status(ids.session_id, "done");
    ids.conversation_id = await api.conversation();
    for (const [index, text] of TEXTS.entries())
      await api.post(pathOf("conversations", ids.conversation_id, "messages"), {
        user_id: "ann",
        text,
        message_id: `said ${index}`,
      });
  });

  const verifyQuestions = async () => {
    for (const [q, indices] of QUESTIONS) {
      const all = await hits({ q });
      const steps = all.filter(({ kind }) => kind === "step");
      const messages = all.filter(({ kind }) => kind === "message");
      assert.deepEqual(
        steps.map(({ iteration }) => `${iteration}`).sort(),
        indices.map(String),
        `steps for ${q.slice(0, 50)}`,
      );
      assert.deepEqual(
        messages.map(({ message_id }) => `${message_id}`).sort(),
        indices.map((index) => `said ${index}`),
        `messages for ${q.slice(0, 50)}`,
      );
      for (const hit of steps)
        assert.deepEqual([hit.session_id, hit.text], [ids.session_id, TEXTS[hit.iteration ?? -1]]);
      for (const hit of messages)
        assert.deepEqual(
          [hit.conversation_id, hit.text],
          [ids.conversation_id, TEXTS[Number(hit.message_id?.slice(5))]],
        );
      const scores = all.map(({ score }) => score);
      assert.ok(scores.every((score) => score > 0));
      assert.deepEqual(
        scores,
        scores.toSorted((a, b) => b - a),
        "best first",
      );
    }
  };
  const verifyFilters = async () => {
    const kindsFor = async (query: Query) => (await hits({ q: "fox", ...query })).map(({ kind }) => kind);
    assert.deepEqual(await kindsFor({ session_id: ids.session_id }), ["step", "step"]);
    assert.deepEqual(await kindsFor({ agent_id: ids.agent_id }), ["step", "step"]);
    assert.deepEqual(await kindsFor({ agent_id: ids.agent_id, session_id: ids.session_id }), ["step", "step"]);
    assert.deepEqual(await kindsFor({ agent_id: "nobody" }), []);
    assert.deepEqual(await kindsFor({ agent_id: "nobody", session_id: ids.session_id }), []);
    assert.equal((await kindsFor({ limit: 1 })).length, 1);
    assert.equal((await kindsFor({ limit: 3 })).length, 3);
  };

  test(
    "finds words of any script, letter case and diacritics aside, as soon as they are said",
    TIMEOUT,
    verifyQuestions,
  );
  test("is narrowed to a session or an agent, and to a number of hits", TIMEOUT, verifyFilters);

  test("finds a message the moment it is acknowledged", TIMEOUT, async () => {
    const { api } = world();
    for (let round = 0; round < 10; round += 1) {
      const word = `word${round}`;
      const conversation_id = await api.conversation();
      await api.post(pathOf("conversations", conversation_id, "messages"), { user_id: "ann", text: `a ${word} b` });
      assert.deepEqual(
        (await hits({ q: word })).map((hit) => hit.conversation_id),
        [conversation_id],
      );
    }
  });

  test("ranks a text first that has the words more often and is shorter", TIMEOUT, async () => {
    assert.deepEqual(
      (await hits({ q: "fox", session_id: ids.session_id })).map(({ iteration }) => iteration),
      [1, 0],
    );
  });

  test("finds the same after the rows were moved, and new ones beside them", TIMEOUT, async () => {
    const { server, api } = world();
    await server.stop();
    await server.start();
    await verifyQuestions();
    await verifyFilters();
    const { session_id } = await api.create("script", {
      agent_id: ids.agent_id,
      params: { frames: [{ text: "One more fox" }] },
    });
    await world().ended(session_id);
    const both = await hits({ q: "fox", agent_id: ids.agent_id });
    assert.deepEqual(
      new Set(both.map((hit) => `${hit.session_id} ${hit.iteration}`)),
      new Set([`${session_id} 0`, `${ids.session_id} 0`, `${ids.session_id} 1`]),
    );
  });
});
