import assert from "node:assert/strict";
import { test } from "node:test";
import { MonikerFiles, monikerFile } from "../monikers/moniker-files.ts";
import { onPostgres } from "../postgres-server.ts";
import { Api } from "../server/api.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { Cluster } from "./cluster.ts";

const teller = (word: string) => ({ "teller.ts": monikerFile("teller", JSON.stringify(word), { kind: "reactive" }) });

await onPostgres(() => {
  test(
    "every worker and server loads its own monikers at SIGHUP, and all of them agree on the version",
    TIMEOUT,
    async () => {
      await using files = await MonikerFiles.with(teller("old"));
      await using cluster = await Cluster.open(files.folder);
      const environment = { EVERSTEP_MONIKERS: files.folder, EVERSTEP_LOG_LEVEL: "info" };
      const workers = [cluster.start("worker", environment), cluster.start("worker", environment)];
      const server = cluster.start("server", environment);
      const members = [...workers, server];
      await Promise.all(members.map((member) => member.ready()));
      const api = new Api(await server.ready());
      const session_ids = await cluster.createMany(6, "teller");
      const askAll = async (iteration: number): Promise<void> => {
        await Promise.all(session_ids.map((id) => cluster.tell(id, "say it")));
        await cluster.until(`iteration ${iteration}`, session_ids, (session) => session.iteration === iteration);
      };
      await askAll(0);
      await files.write(teller("new"));
      for (const member of members) member.signal("SIGHUP");
      for (const member of members)
        await eventually("it was loaded", async () => member.said.includes("a moniker was changed"));
      await askAll(1);
      const { monikers } = JSON.parse((await api.get("/api/monikers")).text) as {
        monikers: { name: string; version: string }[];
      };
      const version = monikers.find(({ name }) => name === "teller")?.version;
      for (const session_id of session_ids) {
        const steps = await cluster.steps(session_id);
        assert.deepEqual(
          steps.map(({ text }) => text),
          ["old", "new"],
        );
        assert.equal(steps[1]?.moniker_version, version);
        assert.notEqual(steps[0]?.moniker_version, version);
      }
      for (const member of members) await member.stop();
    },
  );

  test("a server without its own agents reruns a recorded step", TIMEOUT, async () => {
    await using cluster = await Cluster.open();
    const server = cluster.start("server");
    const [worker] = await cluster.workers(1);
    const session_id = await cluster.create("count", { to: 2 });
    await cluster.until("the end", [session_id], ({ status }) => status === "done");
    await worker?.stop();
    const answer = await new Api(await server.ready()).post(`/api/sessions/${session_id}/steps/1/rerun`);
    const { frame, differs } = JSON.parse(answer.text) as { frame: { text: string }; differs: boolean };
    assert.deepEqual([answer.status, frame.text, differs], [200, "1", false]);
  });
});
