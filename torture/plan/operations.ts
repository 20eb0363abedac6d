import { pathOf } from "../../test/server/api.ts";
import type { Random } from "../../test/store/random.ts";
import type { Creation, Operation } from "./plan.ts";

type Kind = Operation["kind"];

/** How often each is asked for, of a hundred. */
const SHARES: readonly [Kind, number][] = [
  ["create", 18],
  ["interrupt", 22],
  ["control", 18],
  ["say", 14],
  ["fork", 4],
  ["rename", 2],
  ["cut", 2],
  ["read", 20],
];
/** Requests mostly go to sessions that were made lately, since those are the ones that still run. */
const RECENT = 40;
const FOLLOWED = 1 / 25;
const REPEATED = 0.1;

/** Draws one operation after the other. Each id and each word is used once. */
export class Operations {
  readonly #random: Random;
  readonly #conversations: string[];
  readonly #agents: string[];
  readonly #sessions: string[] = [];
  #number = 0;

  constructor(random: Random, conversations: string[], agents: Creation[]) {
    this.#random = random;
    this.#conversations = conversations;
    this.#agents = agents.map(({ session_id }) => session_id);
  }

  next(): Operation {
    let left = this.#random.below(100);
    const drawn = SHARES.find(([, share]) => (left -= share) < 0)?.[0] ?? "read";
    return this.#draw(this.#sessions.length === 0 ? "create" : drawn);
  }

  #draw(kind: Kind): Operation {
    const random = this.#random;
    const again = random.chance(REPEATED);
    const mode = random.chance(0.3) ? "now" : "next";
    const conversation_id = random.pick(this.#conversations);
    switch (kind) {
      case "create":
        return { kind, body: this.#creation(), again, followed: random.chance(FOLLOWED) };
      case "fork": {
        const word = random.chance(0.5) ? this.#name("fork word") : null;
        const parent = { session_id: this.#target(), iteration: random.below(6) };
        return { kind, ...parent, fork_id: this.#session("fork"), word, again };
      }
      case "say": {
        const message_id = this.#name("message");
        return { kind, conversation_id, message_id, text: `said ${message_id}`, mode, again };
      }
      case "interrupt":
        return { kind, session_id: this.#target(), word: this.#name("word"), mode };
      case "control":
        return this.#control();
      case "rename":
        return { kind, conversation_id, title: this.#name("title") };
      case "cut":
        return { kind, follower: random.below(1000) };
      case "read":
        return { kind, path: this.#path(conversation_id) };
    }
    return kind satisfies never;
  }

  #control(): Operation {
    const verb = this.#random.pick(["pause", "pause", "pause", "resume", "resume", "resume", "resume", "destroy"]);
    // The agents of the conversations stay, so that there is always someone to talk to.
    const session_id = verb === "destroy" ? this.#recent() : this.#target();
    return { kind: "control", verb: verb as "pause" | "resume" | "destroy", session_id };
  }

  #creation(): Creation {
    const random = this.#random;
    const moniker = random.pick(["count", "count", "count", "echo", "joke", "script"] as const);
    const creation: Creation = {
      agent_id: `${moniker} ${random.below(10)}`,
      moniker,
      session_id: this.#session(moniker),
      ...taskOf(random, moniker),
    };
    // Not one of those that people talk in: they would ask each of hundreds whether it still listens.
    return random.chance(0.2)
      ? { ...creation, conversation_id: `${random.pick(this.#conversations)} at work` }
      : creation;
  }

  #target(): string {
    return this.#random.chance(0.25) ? this.#random.pick(this.#agents) : this.#recent();
  }

  #recent(): string {
    return this.#random.pick(this.#sessions.slice(-RECENT));
  }

  #session(kind: string): string {
    const id = this.#name(this.#random.chance(0.1) ? `${kind} 'ü' 100% "/` : kind);
    this.#sessions.push(id);
    return id;
  }

  #name(kind: string): string {
    return `${kind} ${this.#number++}`;
  }

  #path(conversation_id: string): string {
    const session_id = this.#target();
    const of = `session_id=${encodeURIComponent(session_id)}`;
    return this.#random.pick([
      "/api/agents",
      "/api/sessions?limit=50",
      "/api/sessions?status=running",
      "/api/session-summaries?limit=50",
      pathOf("sessions", session_id),
      pathOf("agents", `count ${this.#random.below(10)}`, "sessions"),
      "/api/actions?processed=false",
      `/api/actions?${of}`,
      `/api/agent-steps?${of}`,
      `/api/agent-steps/latest?${of}`,
      "/api/conversations",
      `${pathOf("conversations", conversation_id, "messages")}?limit=500`,
      pathOf("conversations", conversation_id, "participants"),
      "/api/search?q=said",
      "/api/monikers",
      "/health",
      "/metrics",
    ]);
  }
}

function taskOf(random: Random, moniker: Creation["moniker"]): Pick<Creation, "params" | "options"> {
  const retry = { max_attempts: 1 + random.below(3), backoff_ms: 20 };
  const limit = random.chance(0.1) ? { max_steps: 1 + random.below(10) } : {};
  const options = { retry, ...limit };
  switch (moniker) {
    case "count":
      return { params: countOf(random), options };
    case "echo":
      return { params: {}, options };
    case "joke":
      return { params: { subject: "torture" }, options: { ...options, step_interval_ms: 20 + random.below(500) } };
    case "script": {
      const frames = Array.from({ length: 1 + random.below(8) }, (_, n) => ({
        ...(random.chance(0.7) ? { text: `line ${n}` } : {}),
        ...(random.chance(0.5) ? { data: { n } } : {}),
        state: { line: n },
      }));
      return { params: { frames }, options: { ...options, step_interval_ms: random.below(200) } };
    }
  }
  return moniker satisfies never;
}

/** One of five fails somewhere: once or twice, or for good. */
function countOf(random: Random): Record<string, unknown> {
  const to = 2 + random.below(40);
  const failing = random.chance(0.2) ? { fail_at: random.below(to) } : {};
  const times = random.chance(0.7) ? { fail_times: 1 + random.below(3) } : {};
  const large = random.chance(0.1) ? { payload_bytes: random.below(20_000) } : {};
  // A worker that takes over such a session reads for a while, and is told things meanwhile.
  const huge = random.chance(0.05) ? { payload_bytes: 100_000 + random.below(400_000) } : {};
  return { to, delay_ms: random.below(120), ...failing, ...("fail_at" in failing ? times : {}), ...large, ...huge };
}
