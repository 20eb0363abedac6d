import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../store/scratch-folder.ts";
import { survivesKills } from "./killed-jobs.ts";

test("SIGKILL at every stage of archiving, restoring and dropping neither loses nor duplicates anything in the embedded store", async (t) => {
  await using scratch = await scratchFolder();
  const data = join(scratch.path, "data");
  await survivesKills({ url: `lancedb:${data}`, folder: join(scratch.path, "volumes"), data }, t);
});
