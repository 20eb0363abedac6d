import type { FrameOut } from "../../domain/step-frame.ts";
import { act } from "./act.ts";
import { condense } from "./condense.ts";
import { type LoopStep, type LoopWork, offeredTools } from "./loop-frames.ts";
import { type LoopState, recall } from "./loop-state.ts";
import { think } from "./think.ts";

/**
 * An agent that thinks and acts, each model call and each tool call a step of its own:
 *
 * - `think/N` asks the model. A reply without calls is the answer: a session with a task is done, any other rests.
 * - `act/N.k/<server>/<tool>` makes the k-th call that the reply of `think/N` asks for. Where a person has to approve it first,
 *   the step before it asks. A tool that asks or waits does so in the frame of its step, and the step comes once more.
 * - `condense/N` makes room before `think/N` where the model's window is full.
 *
 * LOOP-2  What is to be done next is in the state; the token only names it. So a session goes on from any state that a person
 *         gives it.
 * LOOP-3  A tool that is neither read-only nor idempotent runs in a step marked `once`. Such a step that was begun before asks a
 *         person what to do instead of running the tool.
 * LOOP-4  What the model or the provider does not accept ends one exchange, never the session.
 */
export async function loopStep(work: LoopWork): Promise<FrameOut> {
  const step: LoopStep = { ...work, tools: await offeredTools(work) };
  const state = recall(step.frame.state);
  const { task } = step.profile;
  const opened: LoopState =
    task !== undefined && state.messages.length === 0 && state.calls.length === 0
      ? { ...state, messages: [{ role: "user", text: task }] }
      : state;
  if (opened.calls.length > 0) return act(step, opened);
  return step.frame.step.startsWith("condense/") ? condense(step, opened) : think(step, opened);
}
