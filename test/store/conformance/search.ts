import assert from "node:assert/strict";
import { newId } from "../../../src/domain/ids.ts";
import type { SearchHit } from "../../../src/domain/search.ts";
import type { SearchQuery, Store } from "../../../src/store/store.ts";
import { aMessage, aSession, mustAdvance, mustCommit, mustCreate } from "../fixtures.ts";
import { describeClaims, type OpenStore } from "./opened-store.ts";

const find = (store: Store, q: string, filter: Partial<SearchQuery> = {}): Promise<SearchHit[]> =>
  store.search({ q, limit: 50, ...filter });
const textsOf = (hits: SearchHit[]): string[] => hits.map(({ text }) => text).toSorted();

/** A text, what finds it, and what does not. */
const TEXTS: [text: string, finds: string[], misses: string[]][] = [
  ["The quick brown Fox jumps", ["fox", "FOX", "quick fox", "Brown"], ["foxes or", "qui", "elephant"]],
  ["Résumé of a naïve café owner", ["resume", "RÉSUMÉ", "café", "cafe", "naive", "re\u0301sume\u0301"], ["resumption"]],
  ["Ёлка стоит на площади", ["елка", "Ёлка", "ЁЛКА", "ЕЛКА", "площади", "стоит елка"], ["ёлки"]],
  ["Мой йод в аптечке", ["йод", "ЙОД", "мой", "аптечке"], ["аптека"]],
  ["Straße, Ångström und Übung", ["angstrom", "Ångström", "übung", "UBUNG"], ["strassenbahn"]],
  ["version 42 released on 2026-01-31", ["42", "released", "2026"], ["43"]],
];

export function search(open: OpenStore): void {
  describeClaims("search", open, (claim) => {
    claim(
      "finds words of steps and of messages, whatever their case and diacritics, in English and Russian",
      async (store) => {
        const conversation_id = newId();
        for (const [text] of TEXTS) {
          await mustAdvance(store, await mustCreate(store), { text });
          await mustCommit(store, { messages: [aMessage({ conversation_id, text })] });
        }
        return async (reader) => {
          for (const [text, finds, misses] of TEXTS) {
            for (const q of finds) {
              const hits = await find(reader, q);
              assert.deepEqual(textsOf(hits), [text, text], q);
              assert.deepEqual(hits.map(({ kind }) => kind).toSorted(), ["message", "step"], q);
            }
            for (const q of misses) assert.deepEqual(await find(reader, q), [], q);
          }
        };
      },
    );

    claim("says where a hit is", async (store) => {
      const owned = await mustCreate(store, aSession({ conversation_id: newId() }));
      const next = await mustAdvance(store, owned, { text: "a whereabouts text" });
      const { session_id, conversation_id } = next.owned.session;
      return async (reader) => {
        const hits = await find(reader, "whereabouts");
        const step = hits.find(({ kind }) => kind === "step");
        const message = hits.find(({ kind }) => kind === "message");
        assert.equal(hits.length, 2);
        assert.deepEqual(
          { ...step, score: 1 },
          { kind: "step", score: 1, text: next.step.text, session_id, iteration: 0 },
        );
        assert.equal(message?.conversation_id, conversation_id);
        assert.equal(message?.message_id, next.message?.message_id);
        assert.equal(message?.text, next.step.text);
      };
    });

    claim("is narrowed to an agent or a session", async (store) => {
      const sessions = ["agent-a", "agent-a", "agent-b"].map((agent_id) => aSession({ agent_id }));
      for (const [at, session] of sessions.entries())
        await mustAdvance(store, await mustCreate(store, session), { text: `narrowed ${at}` });
      await mustCommit(store, { messages: [aMessage({ text: "narrowed by a person" })] });
      const [first] = sessions;
      const session_id = first?.session_id ?? "";
      return async (reader) => {
        const cases: [Partial<SearchQuery>, string[]][] = [
          [{}, ["narrowed 0", "narrowed 1", "narrowed 2", "narrowed by a person"]],
          [{ agent_id: "agent-a" }, ["narrowed 0", "narrowed 1"]],
          [{ session_id }, ["narrowed 0"]],
          [{ agent_id: "agent-a", session_id }, ["narrowed 0"]],
          [{ agent_id: "agent-b", session_id }, []],
          [{ agent_id: "agent" }, []],
        ];
        for (const [filter, texts] of cases)
          assert.deepEqual(textsOf(await find(reader, "narrowed", filter)), texts, JSON.stringify(filter));
      };
    });

    claim("gives the best match first and no more than asked for", async (store) => {
      const filler = Array.from({ length: 60 }, (_, at) => `word${at}`).join(" ");
      const messages = [`ranking ${filler}`, "ranking ranking ranking", filler, `ranking and ${filler}`].map((text) =>
        aMessage({ text }),
      );
      await mustCommit(store, { messages });
      return async (reader) => {
        const hits = await find(reader, "ranking");
        assert.equal(hits.length, 3);
        assert.equal(hits[0]?.text, "ranking ranking ranking");
        const scores = hits.map(({ score }) => score);
        assert.deepEqual(
          scores,
          scores.toSorted((a, b) => b - a),
        );
        // Not its score, which changes where rows are moved between two searches.
        const best = await find(reader, "ranking", { limit: 1 });
        assert.deepEqual(
          best.map(({ text }) => text),
          ["ranking ranking ranking"],
        );
        assert.equal((await find(reader, "ranking", { limit: 2 })).length, 2);
      };
    });

    claim("finds rows of long ago and of just now together", async (store) => {
      const old = await mustAdvance(store, await mustCreate(store), { text: "together in the past" });
      let round = 0;
      return async (reader) => {
        round++;
        const [claimed] = [await reader.claimSession({ worker: "worker-1", session_id: old.step.session_id })];
        assert.ok(claimed);
        await mustAdvance(reader, claimed, { text: `together now ${round}` });
        const expected = [
          "together in the past",
          ...Array.from({ length: round }, (_, at) => `together now ${at + 1}`),
        ];
        assert.deepEqual(textsOf(await find(reader, "together")), expected.toSorted());
      };
    });

    claim("takes any text as words, whatever a query language would make of it", async (store) => {
      const text = 'it\'s 100% "quoted" (really) AND so* on:then ~ ^boost';
      await mustCommit(store, { messages: [aMessage({ text })] });
      return async (reader) => {
        for (const q of ["it's", '"quoted"', "(really)", "so*", "on:then", "^boost", "quoted' OR '1'='1"])
          assert.ok(Array.isArray(await find(reader, q)), q);
        for (const q of ["quoted", '"quoted"', "(really)", "boost^"])
          assert.deepEqual(textsOf(await find(reader, q)), [text], q);
        for (const q of ["", "   ", "***", '"', "()", "😀", "\\", "%"]) assert.deepEqual(await find(reader, q), [], q);
      };
    });
  });
}
