import type { FrameOut } from "../../domain/step-frame.ts";
import { act } from "./act.ts";
import { condense } from "./condense.ts";
import { type LoopStep, type LoopWork, offeredTools } from "./loop-frames.ts";
import { type LoopState, recall } from "./loop-state.ts";
import { think } from "./think.ts";

/**
 * An agent that thinks and acts; each model call and each tool call is a step:
 *
 * - `think/N` calls the model. A reply without tool calls is the answer: a session with a task is done, any other rests.
 * - `act/N.k/<server>/<tool>` makes the k-th call requested by the reply of `think/N`. If a person must approve it, the step
 *   before asks. A tool that asks or waits does so in its step's frame, and the step is repeated afterwards.
 * - `condense/N` makes room before `think/N` if the model's window is full.
 *
 * LOOP-2  The state says what comes next; the token only names it. A session can therefore continue from any state that a
 *         person gives it.
 * LOOP-3  A tool that is neither read-only nor idempotent runs in a step marked `once`. If such a step was started before, it
 *         asks a person instead of running the tool.
 * LOOP-4  A request or reply that is refused ends one exchange, never the session.
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
