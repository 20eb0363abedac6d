import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonValue } from "../../src/domain/json.ts";
import { pathOf, read, SHAPES } from "../server/api.ts";
import { eventually } from "../server/server-fixture.ts";
import type { World } from "../server/world.ts";

export type Scene = {
  session_id: string;
  fork_id: string;
  /** An agent with tools that waits for an approval. */
  clerk_id: string;
  asking_id: string;
  researcher_id: string;
  /** A session with the calls of a model and two tools in one step. */
  caller_id: string;
  /** A session that was running when its server was killed. */
  crashed_id: string;
  conversation_id: string;
};

const STEP = { step_interval_ms: 0, max_steps: 60 };
const NO_RETRY = { retry: { max_attempts: 1, backoff_ms: 0 } };

/**
 * Something on every page: agents that work, wait, ask, fail and are done, and people who talk to them. The server is killed
 * and restarted once, so afterwards rows can be awaited only through the API.
 */
export async function setScene(world: World): Promise<Scene> {
  const { api } = world;
  const clerk_id = await clerk(world);
  const session_id = await guidedJoker(world);
  const fork = await api.post(pathOf("sessions", session_id, "fork"), { iteration: 3, guidance: "green tea" });
  const fork_id = read(fork, 202, SHAPES.accepted).session_id;
  await world.iteration(fork_id, 6);
  await world.control(fork_id, "pause");
  const running = { params: { subject: "queues" }, options: { step_interval_ms: 2000 } };
  await api.create("joke", { agent_id: "night-shift", ...running });
  const crashed = await api.create("count", { agent_id: "importer", params: { to: 100_000, delay_ms: 400 } });
  const failed = await api.create("count", {
    agent_id: "nightly-report",
    params: { to: 9, fail_at: 4 },
    options: NO_RETRY,
  });
  await world.status(failed.session_id, "error");
  const limited = await api.create("joke", {
    agent_id: "greeter",
    params: { subject: "tea" },
    options: { ...STEP, max_steps: 5 },
  });
  await world.status(limited.session_id, "stopped");
  const done = await api.create("count", { agent_id: "migration", params: { to: 12 } });
  await world.status(done.session_id, "done");
  await asking(world);
  const asking_id = await approval(world);
  const researcher_id = await researcher(world);
  const caller = await api.create("caller", { agent_id: "mender" });
  await world.status(caller.session_id, "done");
  const conversation_id = await conversation(world);
  const { session_id: crashed_id } = crashed;
  await crash(world, crashed_id);
  return {
    session_id,
    fork_id,
    clerk_id,
    asking_id,
    researcher_id,
    caller_id: caller.session_id,
    crashed_id,
    conversation_id,
  };
}

/** An agent with tools: it reads invoices, books the unpaid ones, and wants to send a reminder. */
async function clerk(world: World): Promise<string> {
  const folder = join(world.server.folder, "workspace", "invoices");
  await mkdir(folder, { recursive: true });
  for (const [number, customer, amount, status] of [
    [17, "Harbour Cafe", 120, "unpaid"],
    [18, "Blue Bikes", 75, "paid"],
    [19, "Nordic Prints", 340, "unpaid"],
  ] as const)
    await writeFile(
      join(folder, `${number}.txt`),
      `Invoice ${number}\nCustomer: ${customer}\nAmount: ${amount} EUR\nStatus: ${status}\n`,
    );
  const { session_id } = await world.api.create("agent", {
    agent_id: "clerk",
    params: { task: "Remind the customers who have not paid yet." },
    options: { model: "openai/scripted", max_steps: 40, max_cost_usd: 1, tools: { ask: ["own/send_reminder"] } },
  });
  await world.session(session_id, ({ question }) => question !== null);
  return session_id;
}

async function crash(world: World, session_id: string): Promise<void> {
  const { api } = world;
  await world.iteration(session_id, 6);
  await world.server.kill();
  await new Promise((done) => setTimeout(done, 1500));
  await world.server.start();
  const { iteration } = await api.session(session_id);
  await eventually("it goes on", async () => (await api.session(session_id)).iteration > iteration + 5);
}

async function guidedJoker(world: World): Promise<string> {
  const { session_id } = await world.api.create("joke", {
    agent_id: "joker",
    params: { subject: "tea" },
    options: { ...STEP, step_interval_ms: 40 },
  });
  await world.iteration(session_id, 1);
  const metadata = { user_id: "ann" };
  const payload = { guidance: "coffee" };
  await world.api.post("/api/actions", { action_type: "agent_interrupt", session_id, payload, metadata });
  await world.session(session_id, ({ context }) => context["subject"] === payload.guidance);
  await world.iteration(session_id, 30);
  await world.control(session_id, "pause");
  return session_id;
}

/** A chat that asks whether it may overwrite a file. */
async function asking(world: World): Promise<void> {
  const { session_id } = await world.api.create("chat", { agent_id: "librarian" });
  for (const guidance of ["write notes.md: first", "write notes.md: second"]) {
    const sent = await world.api.post(pathOf("sessions", session_id, "interrupt"), { guidance });
    await world.consumed(read(sent, 202, SHAPES.accepted).action_id);
  }
}

/** A deployer that needs approval for a tool call before tomorrow. */
async function approval(world: World): Promise<string> {
  const until = new Date(Date.now() + 86_400_000).toISOString();
  const about = { kind: "tool", tool: "cluster/deploy", args: { service: "web", version: "2.4.0", replicas: 3 } };
  const choices = [
    { value: "approve", label: "Approve" },
    { value: "always", label: "Always approve" },
    { value: "deny", label: "Deny" },
  ];
  const ask = { text: "May I deploy version 2.4.0?", choices, about };
  const frames: JsonValue = [{ text: "The tests of 2.4.0 pass.", ask, wait: { until } }, { text: "Deployed." }];
  const { session_id } = await world.api.create("script", { agent_id: "deployer", params: { frames } });
  await world.session(session_id, ({ question }) => question !== null);
  return session_id;
}

/** An agent that called a model and tools, started another session to count, and was forked. */
async function researcher(world: World): Promise<string> {
  const tools = ["web/search", "files/read", "web/search", "files/read", "files/read", "files/write"];
  const tokens = [
    "plan",
    ...tools.flatMap((tool, round) => [`think/${round + 1}`, `act/${round + 1}.1/${tool}`]),
    "think/7",
  ];
  const counting = { action_type: "agent_create", agent_id: "counter", moniker: "count", params: { to: 3 } };
  const frames: JsonValue = [
    { text: "Begun.", next_step: "plan" },
    ...tokens.slice(1).map((next_step, at) => ({
      text: `On to ${next_step}.`,
      next_step,
      ...(at === 3 && { actions: [counting] }),
      ...(at === tokens.length - 2 && { wait: {} }),
    })),
    { text: "Written." },
  ];
  const { session_id } = await world.api.create("script", { agent_id: "researcher", params: { frames } });
  await world.iteration(session_id, tokens.length - 1);
  for (const [iteration, user_id] of [
    [4, "ann"],
    [8, "bob"],
  ] as const) {
    const answer = await world.api.post(pathOf("sessions", session_id, "fork"), { iteration, user_id });
    await world.iteration(read(answer, 202, SHAPES.accepted).session_id, tokens.length - 1);
  }
  return session_id;
}

async function conversation(world: World): Promise<string> {
  const { api } = world;
  const conversation_id = await api.conversation({ title: "Release 2.4", created_by: "ann" });
  const { session_id } = await api.create("typist", { agent_id: "writer", conversation_id, params: { word_ms: 0 } });
  await api.create("echo", { agent_id: "scribe", conversation_id });
  await api.post(pathOf("conversations", conversation_id, "participants"), { user_id: "ann" });
  const said = [
    [
      "ann",
      "Draft the **release notes**, please:\n\n- durable steps\n- guidance with receipts\n\n```\nnpm ci && npm start\n```",
    ],
    ["operator", "Looks good. Add one line about `EVERSTEP_TOKEN`."],
  ] as const;
  for (const [user_id, text] of said) {
    const path = pathOf("conversations", conversation_id, "messages");
    const answer = await api.post(path, { user_id, text, to: [session_id] });
    const { action_ids } = JSON.parse(answer.text) as { action_ids: string[] };
    for (const action_id of action_ids) await world.consumed(action_id);
  }
  return conversation_id;
}
