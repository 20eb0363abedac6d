import { join } from "node:path";
import { test } from "node:test";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { survivesKills } from "./killed-jobs.ts";

await onPostgres(() => {
  test("SIGKILL at every stage of archiving, restoring and dropping neither loses nor duplicates anything in PostgreSQL", async (t) => {
    await using scratch = await scratchFolder();
    const { url, remove } = await postgresHome();
    t.after(remove);
    await survivesKills({ url, folder: join(scratch.path, "volumes"), data: null }, t);
  });
});
