import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { JsonObject } from "../../src/domain/json.ts";
import { isLive } from "../../src/domain/session.ts";
import { modelEnvironment } from "../agent-ws/model-environment.ts";
import type { ModelCall } from "../llm/model-call.ts";
import { ModelServer } from "../llm/model-server.ts";
import { Api, read, SHAPES } from "../server/api.ts";
import { ServerProcess } from "../server/server-fixture.ts";
import { scratchFolder } from "../store/scratch-folder.ts";
import { REFERENCE_SERVERS } from "../tools/mcp-servers.ts";
import { calling } from "./agent-world.ts";

/** How many times the server is killed, and how many tools the agent calls, two steps each. */
const KILLS = Number(process.env["EVERSTEP_AGENT_KILLS"] ?? 4);
const CALLS = Number(process.env["EVERSTEP_AGENT_CALLS"] ?? 12);
const TIMEOUT = { timeout: 60_000 + KILLS * 20_000 + CALLS * 2000 };

const questionSchema = z.object({ kind: z.string(), args: z.object({ n: z.number() }).loose() }).loose();

/** The n-th call that the model requests. Every fourth must not happen twice without consent, and is counted. */
function nthCall(n: number, folder: string): [name: string, args: JsonObject] {
  switch (n % 4) {
    case 0:
      return ["own/pay", { n }];
    case 1:
      return ["disk/read_text_file", { path: join(folder, "papers", "a.txt") }];
    case 2:
      return ["facts/search_nodes", { query: `fact ${n}` }];
    default:
      return ["files/write", { path: `notes/${n}.md`, text: `note ${n}` }];
  }
}

/** Replies by what the request contains, so that it needs no memory. */
const model =
  (folder: string) =>
  async (call: ModelCall): Promise<void> => {
    const n = call.results.length;
    await wait(Math.random() * 60);
    if (n >= CALLS) await call.reply("All is done.");
    else await calling(nthCall(n, folder))(call);
  };

/** A tool that counts its calls, and takes long enough to be cut short often. */
const PAY = `import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { defineTool, z } from "everstep/moniker";
export const pay = defineTool({
  description: "Pays.",
  input: z.object({ n: z.number() }),
  async run({ n }) {
    appendFileSync(process.env.HOME + "/paid.txt", n + "\\n");
    await wait(Math.random() * 150);
    return "paid " + n;
  },
});
`;

async function prepare(folder: string): Promise<Record<string, string>> {
  await mkdir(join(folder, "papers"));
  await mkdir(join(folder, "own-tools"));
  await writeFile(join(folder, "papers", "a.txt"), "a paper");
  await writeFile(join(folder, "own-tools", "own.ts"), PAY);
  const node = process.execPath;
  const mcpServers = {
    disk: { command: node, args: [REFERENCE_SERVERS.filesystem, join(folder, "papers")] },
    facts: { command: node, args: [REFERENCE_SERVERS.memory], env: { MEMORY_FILE_PATH: join(folder, "facts.jsonl") } },
  };
  await writeFile(join(folder, "mcp.json"), JSON.stringify({ mcpServers }));
  return { EVERSTEP_MCP: join(folder, "mcp.json"), EVERSTEP_TOOLS: join(folder, "own-tools") };
}

describe("an agent whose process is killed again and again", () => {
  test(
    `makes ${CALLS} calls through ${KILLS} kills, none twice without consent, and uses all guidance once`,
    TIMEOUT,
    async (t) => {
      await using folder = await scratchFolder();
      await using provider = await ModelServer.open();
      provider.otherwise(model(folder.path));
      const environment = await prepare(folder.path);
      await using server = await ServerProcess.start({ ...modelEnvironment(provider), ...environment });
      const api = new Api(server.url);
      const { session_id } = read(
        await api.post("/api/agents", { agent_id: "payer", moniker: "agent", params: { task: "Pay, read and note." } }),
        202,
        SHAPES.accepted,
      );
      const asked = new Map<number, number>();
      const said: string[] = [];
      let kills = 0;
      let before = -1;
      for (let round = 0; ; round++) {
        const session = await api.session(session_id);
        if (!isLive(session.status)) break;
        if (session.question) {
          const { kind, args } = questionSchema.parse(session.question.about);
          assert.equal(kind, "in_doubt");
          const { question_id } = session.question;
          const answer = await api.post(`/api/sessions/${session_id}/answer`, { question_id, answer: "again" });
          if (answer.status === 202) asked.set(args.n, (asked.get(args.n) ?? 0) + 1);
        }
        if (round % 3 === 0) {
          const guidance = `word ${round}`;
          const { status } = await api.post(`/api/sessions/${session_id}/interrupt`, { guidance });
          if (status === 202) said.push(guidance);
        }
        // A person resumes a session that is held after repeated crashes.
        if (session.status === "paused") await api.post(`/api/sessions/${session_id}/resume`);
        await wait(Math.random() * 300);
        if (kills >= KILLS || (session.iteration === before && round % 20 > 0)) continue;
        before = session.iteration;
        kills += 1;
        await server.kill();
        await server.start();
      }
      const session = await api.session(session_id);
      assert.deepEqual([session.status, session.result], ["done", "All is done."], session.last_error ?? "");
      const paid = (await readFile(join(server.folder, "paid.txt"), "utf8")).trim().split("\n").map(Number);
      for (let n = 0; n < CALLS; n += 4) {
        const times = paid.filter((one) => one === n).length;
        // Once, plus once for each time a person agreed: a call may have been cut short before it began.
        assert.ok(times >= 1 && times <= 1 + (asked.get(n) ?? 0), `call ${n} was made ${times} times`);
      }
      const steps = await api.steps(session_id);
      const finished = steps.filter(({ step_token, directives }) => step_token.startsWith("act/") && !directives?.ask);
      assert.deepEqual([finished.length, new Set(finished.map(({ step_token }) => step_token)).size], [CALLS, CALLS]);
      const heard = steps.flatMap(({ guidance }) => guidance).filter((word) => typeof word === "string");
      const bounced = session.pending_guidance;
      for (const word of said)
        assert.ok(heard.filter((one) => one === word).length <= 1 && bounced.length === 0, `${word} was heard twice`);
      const consumed = said.filter((word) => heard.includes(word)).length;
      t.diagnostic(
        `${kills} kills, ${steps.length} steps, ${asked.size} calls in doubt, ${consumed} of ${said.length} words heard`,
      );
      assert.ok(said.length - consumed <= 1, "only a word that came after the last step was returned");
    },
  );
});
