import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Archives } from "../../src/archive/archives.ts";
import { VolumeFiles } from "../../src/archive/volume-files.ts";
import { EverstepError } from "../../src/domain/errors.ts";
import { grow } from "../store/conformance/steps.ts";
import { ended, finished } from "../store/conformance/volumes.ts";
import { openLanceHome } from "../store/embedded-home.ts";
import { aSession, mustCreate } from "../store/fixtures.ts";
import { BucketServer } from "./bucket-server.ts";

describe("volumes in a bucket", () => {
  test("are written, read, restored and dropped; while the bucket is down only their sessions are unreadable", async (t) => {
    await using bucket = await BucketServer.start();
    Object.assign(process.env, bucket.environment);
    const { store, destroy } = await openLanceHome();
    t.after(destroy);
    const archives = new Archives(store, async () => new VolumeFiles(null), "s3://history/agents");
    const sessions = [];
    for (let at = 0; at < 3; at++) {
      const { owned } = await grow(store, await mustCreate(store, aSession()), 40, [2]);
      sessions.push(await ended(store, owned));
    }
    const [first, second] = sessions.map(({ session_id }) => session_id) as [string, string];
    const read = (session_id: string) => store.listSteps({ session_id, limit: 100, offset: 0 });
    const [before] = [await read(first)];
    const job = await finished(archives, { kind: "archive", older_than_ms: -1000, dry_run: false });
    assert.equal(job.sessions, 3);
    assert.ok(job.bytes > 0);
    assert.ok([...bucket.objects.keys()].every((key) => key.startsWith("agents/steps-")));
    assert.deepEqual(await read(first), before);

    bucket.isDown = true;
    const away = new Archives(store, async () => new VolumeFiles(null), "s3://history/agents");
    await assert.rejects(
      read(first),
      (error) => error instanceof EverstepError && error.code === "archive_unreachable",
    );
    assert.equal((await store.listSessions({ limit: 10, offset: 0 })).length, 3);
    bucket.isDown = false;
    assert.deepEqual(await read(first), before);

    await finished(away, { kind: "restore", session_ids: [second] });
    assert.equal((await finished(away, { kind: "drop", older_than_ms: -1000, dry_run: false })).volumes, 1);
    assert.deepEqual([...bucket.objects.keys()], []);
    assert.deepEqual(await read(first), []);
    assert.equal((await read(second)).length, 42);
    await away.stop();
  });
});
