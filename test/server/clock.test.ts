import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { AgentApi } from "../../src/agent-api/agent-api.ts";
import type { Agent } from "../../src/domain/agent.ts";
import type { Conversation } from "../../src/domain/conversation.ts";
import type { Session } from "../../src/domain/session.ts";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";
import { ServerProcess, TIMEOUT } from "./server-fixture.ts";

const SET_BACK = { NODE_OPTIONS: `--import=${new URL("./set-clock-back.ts", import.meta.url).href}` };

async function call<Row>(server: ServerProcess, path: string, body?: object): Promise<Row> {
  const headers = { "content-type": "application/json" };
  const sent = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
  return (await (await fetch(server.url + path, sent)).json()) as Row;
}

/** The chat that a new connection gets. */
async function chatOf(server: ServerProcess): Promise<string | null> {
  const api = new AgentApi("test", `${server.url.replace("http", "ws")}/agent_ws/`);
  await api.connect();
  const { session_id } = api;
  await api.close();
  return session_id;
}

/** A server at the real time, then one a day earlier on the same store. */
function promises(home: () => Promise<{ store: string; remove: () => Promise<void> }>): void {
  let store: string;
  let remove = async (): Promise<void> => {};
  let first: string | null;
  let server: ServerProcess;
  before(async () => {
    ({ store, remove } = await home());
    await using earlier = await ServerProcess.start({ EVERSTEP_STORE: store });
    first = await chatOf(earlier);
    await call(earlier, "/api/agents", { agent_id: "a", moniker: "echo", session_id: "a-1" });
    await call(earlier, "/api/conversations", { conversation_id: "c-1" });
    await earlier.stop();
    server = await ServerProcess.start({ EVERSTEP_STORE: store, ...SET_BACK });
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await remove();
  });

  test("everyone who connects gets the one chat, before a reset and after it", TIMEOUT, async () => {
    assert.equal(await chatOf(server), first);
    await call(server, "/reset", {});
    const second = await chatOf(server);
    assert.notEqual(second, first);
    for (let time = 0; time < 3; time++) assert.equal(await chatOf(server), second);
    assert.equal((await call<Agent>(server, "/api/agents/default")).session_count, 2);
  });

  test("the session made last is an agent's latest, and is listed first", TIMEOUT, async () => {
    await call(server, "/api/agents", { agent_id: "a", moniker: "echo", session_id: "a-2" });
    const times = await Promise.all(["a-1", "a-2"].map((id) => call<Session>(server, `/api/sessions/${id}`)));
    assert.ok((times[0]?.created_at ?? "") > (times[1]?.created_at ?? ""), "the clock was not set back");
    assert.equal((await call<Agent>(server, "/api/agents/a")).latest.session_id, "a-2");
    for (const path of ["/api/sessions?agent_id=a", "/api/session-summaries?agent_id=a", "/api/agents/a/sessions"]) {
      const { sessions } = await call<{ sessions: Session[] }>(server, path);
      assert.deepEqual(
        sessions.map(({ session_id }) => session_id),
        ["a-2", "a-1"],
        path,
      );
    }
    assert.equal((await call<{ session_id: string }>(server, "/api/agents/a/pause", {})).session_id, "a-2");
  });

  test("the conversation made last is listed first", TIMEOUT, async () => {
    await call(server, "/api/conversations", { conversation_id: "c-2" });
    const { conversations } = await call<{ conversations: Conversation[] }>(server, "/api/conversations");
    assert.deepEqual(
      conversations.map(({ conversation_id }) => conversation_id),
      ["c-2", "c-1"],
    );
  });
}

await onPostgres(() => {
  describe("where the clock was set back by a day, on PostgreSQL", () => {
    promises(async () => {
      const { url, remove } = await postgresHome();
      return { store: url, remove };
    });
  });
});

describe("where the clock was set back by a day, on the embedded store", () => {
  let folder: ScratchFolder;
  promises(async () => {
    folder = await scratchFolder();
    return { store: `lancedb:${folder.path}/data`, remove: async () => folder[Symbol.asyncDispose]() };
  });
});
