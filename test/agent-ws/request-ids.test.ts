import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AgentApi } from "../../src/agent-api/agent-api.ts";
import { sharedServer, TIMEOUT } from "../server/server-fixture.ts";
import { agentUrl } from "./raw-client.ts";

describe("a question with its sender's own id", () => {
  const server = sharedServer();

  test("can be looked up by it, with the step that answered it", TIMEOUT, async () => {
    const api = new AgentApi("asker", agentUrl(server().url));
    await api.connect();
    let answer = "";
    for await (const chunk of api.sendMessage("help", { request_id: "$event:1" })) answer += chunk;
    const { session_id } = api;
    await api.close();
    const get = async (path: string): Promise<Record<string, unknown>[]> => {
      const body = (await (await fetch(`${server().url}${path}session_id=${session_id}`)).json()) as object;
      return Object.values(body)[0] as Record<string, unknown>[];
    };
    const actions = await get("/api/actions?");
    const asked = actions.filter(({ metadata }) => (metadata as { request_id?: string }).request_id === "$event:1");
    assert.equal(asked.length, 1);
    const iteration = Number(asked[0]?.["consumed_iteration"]);
    const [step] = await get(`/api/agent-steps?min_iteration=${iteration}&max_iteration=${iteration}&`);
    assert.equal(step?.["text"], answer);
  });
});
