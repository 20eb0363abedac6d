import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, type TestContext, test } from "node:test";
import { AgentApi } from "../../src/agent-api/agent-api.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import type { WorkerInfo } from "../../src/store/store.ts";
import { onPostgres } from "../postgres-server.ts";
import { eventually, TIMEOUT } from "../server/server-fixture.ts";
import { spawnEverstep } from "../server/spawn-everstep.ts";
import { Watcher } from "../server/watcher.ts";
import { assertWhole, Cluster } from "./cluster.ts";

await onPostgres(() => {
  describe("two servers and two workers", () => {
    let cluster: Cluster;
    let [one, other] = ["", ""];
    before(async () => {
      cluster = await Cluster.open();
      const servers = [cluster.start("server"), cluster.start("server")];
      [one, other] = (await Promise.all(servers.map((server) => server.ready()))) as [string, string];
      await cluster.workers(2);
    });
    after(() => cluster[Symbol.asyncDispose]());

    async function watchBoth(t: TestContext): Promise<Watcher[]> {
      const watchers = [await Watcher.connect(one), await Watcher.connect(other)];
      t.after(() => {
        for (const watcher of watchers) watcher[Symbol.dispose]();
      });
      return watchers;
    }

    async function post<Answer>(url: string, path: string, body: object = {}): Promise<Answer> {
      const headers = { "content-type": "application/json" };
      const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
      assert.ok(response.ok, `${path}: ${response.status}`);
      return (await response.json()) as Answer;
    }

    test(
      "a socket on one sees a session that was made on the other, every step once and in order",
      TIMEOUT,
      async () => {
        const last = 100;
        const request = { agent_id: "counter", moniker: "count", params: { to: last, delay_ms: 5 } };
        const { session_id } = await post<{ session_id: string }>(one, "/api/agents", request);
        using early = await Watcher.connect(other);
        await early.follow({ session_id, after_iteration: -1 });
        using late = await Watcher.connect(one);
        await early.until("the middle", () => early.of("agent_step").length > 30);
        await late.follow({ session_id, after_iteration: 9 });
        for (const watcher of [early, late])
          await watcher.until("the end", () => watcher.of<Session>("agent_state_update").at(-1)?.status === "done");
        assertWhole(early.of<Step>("agent_step"), last);
        assert.deepEqual(
          late.of<Step>("agent_step").map(({ iteration }) => iteration),
          Array.from({ length: last - 9 }, (_, at) => at + 10),
        );
      },
    );

    test("the text of a running step is seen on either, before the step itself", TIMEOUT, async (t) => {
      const { session_id } = await post<{ session_id: string }>(one, "/api/agents", {
        agent_id: "echo",
        moniker: "echo",
      });
      const watchers = await watchBoth(t);
      for (const watcher of watchers) await watcher.follow({ session_id });
      // Workers publish text only once they know that somebody follows, and a step may arrive before its text, which is then
      // only in the step.
      const guidance = `${"й".repeat(20_000)} end`;
      const heard = watchers.map(() => false);
      for (let said = 1; heard.includes(false); said++) {
        assert.ok(said < 100, "no text was seen");
        await post(other, `/api/sessions/${session_id}/interrupt`, { guidance });
        for (const [at, watcher] of watchers.entries()) {
          await watcher.until(`step ${said}`, () => watcher.of("agent_step").length === said);
          const names = watcher.events.map(({ event }) => event);
          assert.ok(names.lastIndexOf("agent_step_delta") < names.lastIndexOf("agent_step"), names.join(" "));
          const { text, iteration } = watcher.of<Step>("agent_step_delta").at(-1) ?? {};
          if (iteration === said - 1) assert.equal(text, guidance);
          heard[at] ||= iteration === said - 1;
        }
      }
    });

    test("messages of a conversation are seen on either, none lost and none twice", TIMEOUT, async (t) => {
      const { conversation_id } = await post<{ conversation_id: string }>(one, "/api/conversations");
      const request = { agent_id: "echo", moniker: "echo", conversation_id };
      await post(one, "/api/agents", request);
      const watchers = await watchBoth(t);
      for (const watcher of watchers) await watcher.follow({ conversation_id, after: "" });
      for (let said = 0; said < 20; said++)
        await post(said % 2 === 0 ? one : other, `/api/conversations/${conversation_id}/messages`, {
          user_id: "someone",
          text: `said ${said}`,
        });
      const answered = async (): Promise<boolean> => {
        const rows = await cluster.store.listMessages({ conversation_id, limit: 100, offset: 0 });
        return (
          rows.filter(({ sender_type }) => sender_type === "agent").flatMap(({ text }) => text?.split("\n") ?? [])
            .length === 20
        );
      };
      await eventually("all are answered", answered);
      const rows = await cluster.store.listMessages({ conversation_id, limit: 100, offset: 0 });
      const ids = rows.map(({ message_id }) => message_id);
      for (const watcher of watchers) {
        await watcher.until("all messages", () => watcher.of("conversation_message").length >= ids.length);
        assert.deepEqual(
          watcher.of<{ message_id: string }>("conversation_message").map(({ message_id }) => message_id),
          ids,
        );
      }
    });

    test("health and `everstep workers` tell who is there and what they own", TIMEOUT, async () => {
      const { session_id } = await post<{ session_id: string }>(one, "/api/agents", { agent_id: "e", moniker: "echo" });
      await eventually("it is owned", async () =>
        [...(await cluster.owners()).values()].some((w) => w.owned_sessions > 0),
      );
      const health = (await (await fetch(`${other}/health`)).json()) as { store: string; workers: WorkerInfo[] };
      assert.equal(health.store, "postgres");
      assert.equal(health.workers.filter(({ takes_sessions }) => takes_sessions).length, 2);
      assert.equal(health.workers.length, 5, "two servers, two workers, and the test");
      const child = spawnEverstep(["workers", "--url", one], {}, process.cwd());
      let said = "";
      child.stdout?.setEncoding("utf8").on("data", (text: string) => (said += text));
      await once(child, "close");
      assert.match(said, /NAME\s+ROLE\s+SESSIONS/);
      assert.equal(said.match(/ worker /g)?.length, 2, said);
      await post(one, `/api/sessions/${session_id}/destroy`);
    });

    test("/health names the workers, whose names tell hosts, only to those who have the token", TIMEOUT, async () => {
      const token = "a-token-of-this-server";
      const url = await cluster.start("server", { EVERSTEP_TOKEN: token }).ready();
      const workers = async (headers: Record<string, string>): Promise<WorkerInfo[]> => {
        const response = await fetch(`${url}/health`, { headers });
        assert.equal(response.status, 200);
        return ((await response.json()) as { workers: WorkerInfo[] }).workers;
      };
      const names = (await cluster.store.listWorkers?.())?.map(({ name }) => name).sort() ?? [];
      assert.ok(names.length >= 5, names.join());
      const trusted = await workers({ authorization: `Bearer ${token}` });
      assert.deepEqual(trusted.map(({ name }) => name).sort(), names);
      for (const authorization of ["", "Bearer wrong"]) {
        const shown = await workers({ authorization });
        assert.equal(shown.length, names.length);
        for (const worker of shown) assert.ok(!("name" in worker), JSON.stringify(worker));
        assert.ok(!names.some((name) => JSON.stringify(shown).includes(name)));
      }
    });

    test("the one chat is the same on both, answers everyone in turn, and is reset from either", TIMEOUT, async (t) => {
      const clients = [one, other].map((url) => new AgentApi("someone", `${url.replace("http", "ws")}/agent_ws/`));
      t.after(() => {
        for (const client of clients) void client.close();
      });
      for (const client of clients) await client.connect();
      const ask = async (client: AgentApi, text: string): Promise<string> => {
        let answer = "";
        for await (const chunk of client.sendMessage(text)) answer += chunk;
        return answer;
      };
      for (let round = 0; round < 3; round++)
        for (const answer of await Promise.all(clients.map((client, at) => ask(client, `hello from ${at}`))))
          assert.ok(answer.length > 0);
      const sessions = async (): Promise<Session[]> =>
        cluster.store.listSessions({ agent_id: "default", limit: 10, offset: 0 });
      const [chat, ...more] = await sessions();
      assert.equal(more.length, 0, "both serve one chat");
      const steps = await cluster.steps(chat?.session_id ?? "");
      assert.deepEqual(
        steps.map(({ guidance }) => guidance.length),
        Array.from({ length: 6 }, () => 1),
        "each question had a step of its own",
      );
      await post(other, "/reset");
      await eventually("the old one ends", async () => (await sessions()).some(({ status }) => status === "stopped"));
      for (const client of clients) assert.ok((await ask(client, "hello again")).length > 0);
      assert.equal((await sessions()).length, 2);
      // A question sent before the server learns of the reset still reaches the new chat.
      for (let round = 0; round < 5; round++) {
        await post(round % 2 === 0 ? one : other, "/reset");
        for (const answer of await Promise.all(clients.map((client) => ask(client, "and again"))))
          assert.ok(answer.length > 0);
      }
      assert.equal((await sessions()).length, 7);
    });
  });
});
