import assert from "node:assert/strict";
import { test } from "node:test";
import { valueRows } from "../../src/store/embedded/archive.ts";
import { toBatch } from "../../src/store/embedded/arrow-rows.ts";
import { checkedValues } from "../../src/store/embedded/row-checksums.ts";
import { columnIndex, EMBEDDED_TABLES, type Values } from "../../src/store/embedded/tables.ts";

const TEXT = columnIndex("agent_steps", "text");

/** The texts of a batch of steps, as LanceDB gives them back. */
function readBack(texts: readonly (string | null)[]): unknown[] {
  const rows = texts.map((text, iteration): Values => {
    const values = EMBEDDED_TABLES.toValues("agent_steps", { session_id: "s", iteration, status: "ok" });
    values[TEXT] = text;
    return checkedValues(EMBEDDED_TABLES, "agent_steps", values);
  });
  const batch = toBatch(EMBEDDED_TABLES, "agent_steps", rows);
  return [...valueRows([batch as never], ["text"])].map(([text]) => text);
}

test("texts of a batch are read back as they were, however many bytes their characters take", () => {
  const plain = ["", "a", null, "plain text", null, "z".repeat(1000)];
  const others = ["é", "naïve", "привет", "😀", "\ufeffwith a mark", "a😀b", ""];
  for (const texts of [plain, others, [...plain, ...others], [null, null], [null, "a"], [""]])
    assert.deepEqual(readBack(texts), texts);
});
