import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { verifyJournal } from "../../src/store/embedded/commit-counter.ts";
import { compare } from "../../src/store/embedded/condition.ts";
import { Journal } from "../../src/store/embedded/journal.ts";
import { createTables, openJournalFile } from "../../src/store/embedded/journal-file.ts";
import { FolderFormat } from "../../src/store/embedded/migrations.ts";
import { EMBEDDED_TABLES } from "../../src/store/embedded/tables.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { assertCoded, writeAndKill } from "./store-folder.ts";

const ALL = { rows: 1_000, characters: 2 ** 30 };

/** Statements that damage rows of an open journal, and the reads that encounter them. */
const DAMAGES: [name: string, sql: string, read: (journal: Journal) => unknown][] = [
  [
    "a step's text, read to rebuild a context",
    "UPDATE packed_agent_steps SET row = replace(row, 'lane', 'lame')",
    (journal) => journal.snapshots("agent_state", "").map((session) => journal.chain(session)),
  ],
  [
    "a step's text, read to be moved",
    "UPDATE packed_agent_steps SET row = replace(row, 'lane', 'lame')",
    (journal) => journal.unarchived("agent_steps", 0, 2 ** 31, ALL),
  ],
  [
    "a message's number",
    "UPDATE packed_conversation_messages SET number = number + 1 WHERE pos = (SELECT max(pos) FROM packed_conversation_messages)",
    (journal) => journal.newest("conversation_messages", compare("pos", ">", 0), ALL),
  ],
  [
    "a session's key",
    "UPDATE packed_agent_state SET session_id = session_id || '!'",
    (journal) => journal.snapshots("agent_state", ""),
  ],
  [
    "a session's status",
    "UPDATE packed_agent_state SET status = 'stopped'",
    (journal) => journal.snapshots("agent_state", ""),
  ],
  [
    "a session's parameters",
    "UPDATE session_documents SET params = '{}'",
    (journal) => journal.snapshots("agent_state", "").map(([id]) => journal.documents(String(id))),
  ],
  [
    "a text that is none any more",
    "UPDATE packed_agent_steps SET row = CAST(row AS BLOB)",
    (journal) => journal.unarchived("agent_steps", 0, 2 ** 31, ALL),
  ],
  [
    "a number beyond all numbers",
    "UPDATE packed_agent_steps SET sum = 9007199254740993",
    (journal) => journal.unarchived("agent_steps", 0, 2 ** 31, ALL),
  ],
];

describe("a row of the journal that is damaged after the start", () => {
  test("is reported as store_corrupt when it is read, never returned", async (t) => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "killed");
    await writeAndKill(folder, new Map(), 40);
    for (const [name, sql, read] of DAMAGES)
      await t.test(name, async () => {
        const copy = join(scratch.path, "damaged");
        await cp(folder, copy, { recursive: true });
        {
          using opened = openJournal(copy);
          assert.doesNotThrow(() => read(opened.journal));
          opened.database.exec(sql);
          assert.throws(
            () => read(opened.journal),
            (error) => {
              assertCoded(error, ["store_corrupt"]);
              return error.message.includes("journal.sqlite");
            },
          );
        }
        await rm(copy, { recursive: true });
      });
  });
});

function openJournal(folder: string): { journal: Journal; database: DatabaseSync } & Disposable {
  const { database } = openJournalFile(folder);
  createTables(database, new FolderFormat());
  const { totals, damages } = verifyJournal(database);
  assert.deepEqual(damages, []);
  const journal = new Journal(folder, database, EMBEDDED_TABLES, totals);
  return { journal, database, [Symbol.dispose]: () => journal.close() };
}
