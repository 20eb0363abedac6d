import assert from "node:assert/strict";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Step } from "../../src/domain/step.ts";
import type { LlmWorld } from "./llm-fixture.ts";

export type Turn = { role: "user" | "agent"; text: string };
export type ChatState = JsonObject & {
  turns: Turn[];
  summary: string;
  background: { path: string; text: string }[];
  question: { text: string; tool: string } | null;
};
export type Said = { text: string; deltas: string; step: Step; state: ChatState };

/** A chat, and what it answers. */
export class ChatSession {
  readonly session_id: string;
  readonly #world: LlmWorld;

  private constructor(world: LlmWorld, session_id: string) {
    this.#world = world;
    this.session_id = session_id;
  }

  static async open(world: LlmWorld, params: JsonObject = {}): Promise<ChatSession> {
    return new ChatSession(world, await world.create("chat", { params }));
  }

  /** Says something and waits for the answer, with what was told while it grew. */
  async say(text: string): Promise<Said> {
    const leaving = new AbortController();
    const events = this.#world.runtime.events.follow({ session_id: this.session_id }, leaving.signal);
    const { action_id } = await this.#world.submit({
      action_type: "agent_input",
      session_id: this.session_id,
      payload: { text },
    });
    let deltas = "";
    try {
      for await (const event of events) {
        if (event.kind === "delta") deltas += event.delta.text;
        if (event.kind !== "step") continue;
        const { step } = event;
        assert.equal(step.status, "ok", step.error ?? "");
        assert.deepEqual(step.action_ids, [action_id]);
        return { text: step.text ?? "", deltas, step, state: step.state as ChatState };
      }
    } finally {
      leaving.abort();
    }
    return assert.fail("the store stopped telling news");
  }
}
