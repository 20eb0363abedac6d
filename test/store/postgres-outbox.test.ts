import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { StepDelta } from "../../src/domain/event.ts";
import { ReceivedDeltas } from "../../src/store/postgres/notification-router.ts";
import { Outbox } from "../../src/store/postgres/notify-connection.ts";
import { deltaOf } from "./fixtures.ts";

describe("notifications that wait to be sent", () => {
  test("text of one step is joined, that of several steps and tools keeps its order", () => {
    const outbox = new Outbox();
    outbox.addDelta(deltaOf(0, "a "));
    outbox.addDelta(deltaOf(1, "b "));
    outbox.addDelta(deltaOf(0, "other ", { session_id: "other" }));
    outbox.addDelta(deltaOf(2, "", { tool: "search" }));
    outbox.addDelta(deltaOf(3, "c "));
    const notifications = outbox
      .take()
      .map((news) => (news.kind === "delta" ? [news.delta.text, news.delta.tool] : news));
    assert.deepEqual(notifications, [
      ["a b ", undefined],
      ["other ", undefined],
      ["", "search"],
      ["c ", undefined],
    ]);
    assert.ok(outbox.isEmpty);
  });

  test("too much text of a step becomes its beginning, then a mark, then nothing until it starts over", () => {
    const outbox = new Outbox();
    const word = "word ".repeat(200);
    for (let event_seq = 0; event_seq < 5000; event_seq++) outbox.addDelta(deltaOf(event_seq, word));
    const [text, mark, ...more] = outbox.take().map((news) => (news.kind === "delta" ? news.delta : assert.fail()));
    assert.ok(text && mark);
    assert.ok(text.text.length > 100_000 && text.text.length < 300_000, `${text.text.length} characters are told`);
    assert.deepEqual([mark.text, mark.truncated, more], ["", true, []]);
    outbox.addDelta(deltaOf(5000, word));
    assert.ok(outbox.isEmpty, "the rest of a text with a hole was told");
    outbox.addDelta(deltaOf(0, word));
    assert.equal(outbox.take().length, 1);
  });

  test("notifications of rows are joined, never dropped: a session waits once, from its earliest row on, with all its actions", () => {
    const outbox = new Outbox();
    const session = { kind: "session", session_id: "one", error_rows: 0 } as const;
    outbox.add({ kind: "actions", session_id: "one", actions: ["a"] });
    for (let iteration = 4; iteration < 50_000; iteration++) outbox.add({ ...session, iteration, actions: [] });
    outbox.add({ kind: "actions", session_id: "one", actions: ["b"] });
    outbox.add({ kind: "messages", conversation_id: "talk", first_number: 7 });
    outbox.add({ kind: "messages", conversation_id: "talk", first_number: 9 });
    for (let at = 0; at < 1000; at++) outbox.add({ kind: "work", session_ids: [String(at % 10)] });
    assert.deepEqual(outbox.take(), [
      { ...session, iteration: 4, actions: ["a", "b"] },
      { kind: "messages", conversation_id: "talk", first_number: 7 },
      { kind: "work", session_ids: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] },
    ]);
  });

  test("if some text was lost in transit, the reader is told so, and gets no text with a gap", () => {
    const heard = new ReceivedDeltas();
    const next = (delta: StepDelta, last_seq = delta.event_seq) => heard.next({ kind: "delta", delta, last_seq });
    assert.equal(next(deltaOf(0, "a b c "), 2)?.text, "a b c ");
    assert.equal(next(deltaOf(3, "d "))?.text, "d ");
    assert.deepEqual(next(deltaOf(9, "j ")), deltaOf(9, "", { truncated: true }));
    assert.equal(next(deltaOf(10, "k ")), null);
    assert.equal(next(deltaOf(0, "a "))?.text, "a ", "it started over");
    assert.equal(
      next(deltaOf(5, "f ", { iteration: 1 }))?.text,
      "f ",
      "its beginning was told before anybody listened",
    );
  });
});
