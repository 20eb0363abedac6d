import { pathOf } from "../../test/server/api.ts";
import type { Random } from "../../test/store/random.ts";
import { taskFor } from "../surroundings/bad-provider.ts";
import type { Creation, Operation } from "./plan.ts";

type Kind = Operation["kind"];

/** How often each kind occurs, in percent. */
const SHARES: readonly [Kind, number][] = [
  ["create", 18],
  ["interrupt", 22],
  ["control", 16],
  ["say", 12],
  ["answer", 10],
  ["fork", 4],
  ["rename", 2],
  ["cut", 2],
  ["read", 14],
];
/** Most requests go to recently created sessions, since those are still running. */
const RECENT = 40;
const MONIKERS = [
  ...(["count", "count", "count", "echo", "joke", "script"] as const),
  ...(["agent", "agent", "payments", "payments", "timers", "family", "distant"] as const),
];
const FOLLOWED = 1 / 25;
const REPEATED = 0.1;

/** Generates operations one at a time. Each id and each text is used once. */
export class Operations {
  readonly #random: Random;
  readonly #conversations: string[];
  readonly #agents: string[];
  readonly #sessions: string[] = [];
  /** Sessions that ask people. */
  readonly #asking: string[] = [];
  /** Sessions whose calls are counted by session id: a fork would make them again. */
  readonly #unforkable = new Set<string>();
  #number = 0;

  constructor(random: Random, conversations: string[], agents: Creation[]) {
    this.#random = random;
    this.#conversations = conversations;
    this.#agents = agents.map(({ session_id }) => session_id);
  }

  next(): Operation {
    let left = this.#random.below(100);
    const drawn = SHARES.find(([, share]) => (left -= share) < 0)?.[0] ?? "read";
    const isTooEarly = this.#sessions.length === 0 || (drawn === "answer" && this.#asking.length === 0);
    return this.#draw(isTooEarly ? "create" : drawn);
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
        const parent = { session_id: this.#forkable(), iteration: random.below(6) };
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
      case "answer":
        return { kind, session_id: random.pick(this.#asking.slice(-RECENT)), choice: random.below(2) };
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
    // The agents of the conversations are never destroyed, so that there is always someone to talk to.
    const session_id = verb === "destroy" ? this.#recent() : this.#target();
    return { kind: "control", verb: verb as "pause" | "resume" | "destroy", session_id };
  }

  #creation(): Creation {
    const random = this.#random;
    const moniker = random.pick(MONIKERS);
    const session_id = this.#session(moniker);
    const creation: Creation = {
      agent_id: `${moniker} ${random.below(10)}`,
      moniker,
      session_id,
      ...taskOf(random, moniker, session_id),
    };
    if (moniker === "agent") this.#unforkable.add(session_id);
    if (moniker === "agent" || moniker === "payments") this.#asking.push(session_id);
    // Not in the conversations that people write to: each message would be offered to hundreds of sessions.
    return random.chance(0.2)
      ? { ...creation, conversation_id: `${random.pick(this.#conversations)} at work` }
      : creation;
  }

  #target(): string {
    return this.#random.chance(0.25) ? this.#random.pick(this.#agents) : this.#recent();
  }

  #forkable(): string {
    const session_id = this.#target();
    return this.#unforkable.has(session_id) ? this.#random.pick(this.#agents) : session_id;
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

type Drawn = (typeof MONIKERS)[number];
type Task = Pick<Creation, "params" | "options">;

function taskOf(random: Random, moniker: Drawn, session_id: string): Task {
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
    case "agent": {
      // Tool calls are cut short often; a model that cannot be reached is retried until it can.
      const params = { task: taskFor(session_id, 1 + random.below(8)), tools: ["counter/*"] };
      return { params, options: { model: "openai/torture", retry: { ...retry, max_attempts: 20 } } };
    }
    case "payments":
      return { params: { times: 1 + random.below(4) }, options };
    case "timers":
      return { params: { times: 1 + random.below(5), wait_ms: random.below(3000) }, options };
    case "family":
      return { params: { children: 1 + random.below(5), to: random.below(6) }, options };
    case "distant":
      return { params: { to: 1 + random.below(20) }, options: { retry: { max_attempts: 20, backoff_ms: 50 } } };
  }
  return moniker satisfies never;
}

/** One in five fails somewhere, up to three times or permanently. */
function countOf(random: Random): Record<string, unknown> {
  const to = 2 + random.below(40);
  const failing = random.chance(0.2) ? { fail_at: random.below(to) } : {};
  const times = random.chance(0.7) ? { fail_times: 1 + random.below(3) } : {};
  const large = random.chance(0.1) ? { payload_bytes: random.below(20_000) } : {};
  // A worker that takes over such a session reads for a while, and receives requests meanwhile.
  const huge = random.chance(0.05) ? { payload_bytes: 100_000 + random.below(400_000) } : {};
  return { to, delay_ms: random.below(120), ...failing, ...("fail_at" in failing ? times : {}), ...large, ...huge };
}
