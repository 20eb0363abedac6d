import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { checksumOf } from "./dump-store.ts";
import type { FilledReport } from "./format-writer.ts";
import { scratchFolder } from "./scratch-folder.ts";

/**
 * Creates a small data folder as this version writes it, for later versions to open: `node test/store/make-format-fixture.ts`.
 * The process that wrote it was killed, so that rows are in LanceDB, in the journal and in the journal's log. Every release
 * with a new format adds such a fixture.
 */
await using scratch = await scratchFolder();
const folder = join(scratch.path, "data");
const writer = fork(fileURLToPath(new URL("./format-writer.ts", import.meta.url)), [folder]);
const [{ dump }] = (await once(writer, "message")) as [FilledReport];
const ended = once(writer, "exit");
writer.kill("SIGKILL");
await ended;

const copy = join(scratch.path, "copy");
await cp(folder, copy, { recursive: true });
const database = new DatabaseSync(join(copy, "journal.sqlite"));
const format = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
database.close();

const target = fileURLToPath(new URL(`./formats/format-${format}`, import.meta.url));
execFileSync("tar", ["-czf", `${target}.tar.gz`, "-C", scratch.path, "data"]);
const tables = Object.entries(dump).map(([table, rows]) => [table, { checksum: checksumOf(rows), rows }]);
await writeFile(`${target}.json.gz`, gzipSync(JSON.stringify(Object.fromEntries(tables))));
console.log(`${target}.tar.gz and .json.gz written`);
