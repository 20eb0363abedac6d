import type { JsonObject } from "../../src/domain/json.ts";
import { pathOf } from "../server/api.ts";
import type { World } from "../server/world.ts";

export type ManyScene = {
  /** A session of 3,000 steps with many requests. */
  long_id: string;
  /** A session with many forks. */
  forked_id: string;
  conversation_id: string;
};

const MONIKERS = ["count", "joke", "echo"] as const;
const PARAMS: Readonly<Record<(typeof MONIKERS)[number], (at: number) => JsonObject>> = {
  count: (at) => ({ to: at % 17 }),
  joke: (at) => ({ subject: `subject ${at}` }),
  echo: () => ({}),
};
const SENTENCE = "The quick brown fox jumps over the lazy dog, again and again, because nobody told it to stop. ";

/** A lot of everything: sessions, agents, questions, steps, requests, forks, conversations, messages, webhooks and costs. */
export async function setManyScene(world: World): Promise<ManyScene> {
  const { api } = world;
  const long = await api.create("count", { agent_id: "indexer-of-everything-in-the-archive", params: { to: 2999 } });
  await inTurn(240, (at) => {
    const moniker = MONIKERS[at % MONIKERS.length] ?? "echo";
    const params: JsonObject = PARAMS[moniker](at);
    const options: JsonObject = moniker === "joke" ? { max_steps: 2 + (at % 5), step_interval_ms: 0 } : {};
    return api.create(moniker, {
      agent_id: `agent-${at % 40}${at % 9 === 0 ? "-with-a-rather-long-name" : ""}`,
      params,
      options,
    });
  });
  await inTurn(12, (at) =>
    api.create("script", {
      agent_id: `asker-${at}`,
      params: { frames: [{ text: "asked", ask: { text: `May I go on with part ${at}? ${SENTENCE}` }, wait: {} }] },
    }),
  );
  await inTurn(30, (at) => api.create("caller", { agent_id: `spender-${at % 11}` }));
  const forked = await api.create("joke", {
    agent_id: "forked",
    params: { subject: "tea" },
    options: { max_steps: 4, step_interval_ms: 0 },
  });
  await world.status(forked.session_id, "stopped");
  await inTurn(24, (at) =>
    api.post(pathOf("sessions", forked.session_id, "fork"), { iteration: at % 3, user_id: "ann" }),
  );
  const conversation_id = await conversations(world);
  await inTurn(9, (at) =>
    api.put(pathOf("webhooks", `hook-${at}`), {
      url: `http://127.0.0.1:9/a/rather/long/path/for/a/webhook/number/${at}`,
      events: ["session.asks", "session.ended", "session.failed"],
    }),
  );
  await inTurn(20, () => api.create("count", { agent_id: "reported", params: { to: 0 } }));
  await world.ended(long.session_id);
  return { long_id: long.session_id, forked_id: forked.session_id, conversation_id };
}

async function conversations({ api }: World): Promise<string> {
  await inTurn(45, (at) =>
    api.conversation({ title: `Conversation ${at} about ${at % 4 === 0 ? SENTENCE : "something"}` }),
  );
  const conversation_id = await api.conversation({ title: "A long one" });
  await inTurn(6, (at) => api.create("echo", { agent_id: `listener-${at}`, conversation_id }));
  await inTurn(60, (at) =>
    api.post(pathOf("conversations", conversation_id, "messages"), {
      user_id: at % 2 === 0 ? "operator" : "ann",
      text: at % 10 === 0 ? SENTENCE.repeat(400) : `Message ${at}. ${SENTENCE.repeat(at % 4)}`,
      to: [],
    }),
  );
  return conversation_id;
}

/** Ten at a time, in order. */
async function inTurn(times: number, make: (at: number) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < times; at += 10)
    await Promise.all(Array.from({ length: Math.min(10, times - at) }, (_, index) => make(at + index)));
}
