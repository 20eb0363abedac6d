import assert from "node:assert/strict";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Step } from "../../src/domain/step.ts";
import { type LoopState, recall } from "../../src/monikers/agent/loop-state.ts";
import type { World } from "../runtime/runtime-fixture.ts";
import { PATIENCE_MS, within } from "../within.ts";

/** An answer: the texts of its steps, the live text while they ran, and the last step. */
export type Said = { text: string; deltas: string; step: Step; steps: Step[]; state: LoopState };

/** A chat session and its answers. */
export class ChatSession {
  readonly session_id: string;
  readonly #world: World;

  private constructor(world: World, session_id: string) {
    this.#world = world;
    this.session_id = session_id;
  }

  static async open(world: World, params: JsonObject = {}): Promise<ChatSession> {
    return new ChatSession(world, await world.create("chat", { params }));
  }

  /** Sends a text and waits until the chat rests. */
  say(text: string, more: JsonObject = {}): Promise<Said> {
    return within(PATIENCE_MS, this.#say({ text, ...more }), () => `the chat did not answer ${text.slice(0, 100)}`);
  }

  async #say(payload: JsonObject): Promise<Said> {
    const leaving = new AbortController();
    const { session_id } = this;
    const events = this.#world.runtime.events.follow({ session_id }, leaving.signal);
    const { action_id } = await this.#world.submit({ action_type: "agent_input", session_id, payload });
    let deltas = "";
    const steps: Step[] = [];
    try {
      for await (const event of events) {
        if (event.kind === "delta") deltas += event.delta.text;
        if (event.kind !== "step") continue;
        const { step } = event;
        assert.equal(step.status, "ok", step.error ?? "");
        if (steps.length === 0) assert.deepEqual(step.action_ids, [action_id]);
        steps.push(step);
        if (step.directives?.go_on) continue;
        const answer = steps.flatMap((one) => one.text ?? []).join("\n\n");
        return { text: answer, deltas, step, steps, state: recall(step.state) };
      }
    } finally {
      leaving.abort();
    }
    return assert.fail("the store stopped telling news");
  }
}
