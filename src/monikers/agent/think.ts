import type { FrameOut } from "../../domain/step-frame.ts";
import { shorten } from "../extract.ts";
import type { ModelMessage, ModelReply, ModelRequest } from "../llm/model-turn.ts";
import { StepError } from "../moniker.ts";
import { type Heard, hear, withHeard, withReportsTold } from "./heard.ts";
import { instructionsFor } from "./instructions.ts";
import { goOn, type LoopStep, onward } from "./loop-frames.ts";
import { type LoopState, toState } from "./loop-state.ts";
import { cutAt, isTooLong, roomFor, sizeOf, withinLimit } from "./window.ts";

/** A reply that cannot be used is asked for again so often; then the exchange ends. */
const MOST_ATTEMPTS = 3;
/** What is kept of a question that was not accepted. */
const LEFT_OF_QUESTION = 500;
/** A model that takes less is not asked again with less. */
const SMALLEST_SHARE = 0.005;

/** Asks the model once. */
export async function think(step: LoopStep, before: LoopState): Promise<FrameOut> {
  const { frame, llm, profile } = step;
  const heard = hear(frame.guidance ?? []);
  const room = roomFor(llm, before);
  const state = withReportsTold(withHeard(before, fitting(heard, room)));
  const tooLong = heard.said.find(({ message }) => isTooLong(message, room));
  if (tooLong && profile.task === undefined) return answer(step, state, tooLongText(tooLong.message, room));
  const request = await requestFor(step, state);
  if (sizeOf(request) > room && cutAt(state.messages, room) !== null)
    return onward(step, state, `condense/${state.turn}`);
  let reply: ModelReply;
  try {
    reply = await llm.generate(request, step.context);
  } catch (error) {
    return notAccepted(step, state, error, sizeOf(request) / room);
  }
  const { message } = reply;
  const messages = [...state.messages, message];
  if (message.tool_calls.length === 0 && message.text.trim() === "")
    return notAccepted(
      step,
      state,
      new StepError("bad_output", "the model answered without a word", { retryable: true }),
      1,
    );
  if (message.tool_calls.length === 0) return answered(step, { ...state, messages }, message.text);
  const text = message.text.trim() === "" ? {} : { text: message.text };
  return goOn(step, { ...state, messages, calls: message.tool_calls, finished: 0, is_approved: false }, text);
}

export async function requestFor(step: LoopStep, state: LoopState): Promise<ModelRequest> {
  const { tools } = step;
  return {
    instructions: await instructionsFor(step.profile.instructions, state, step.context),
    messages: state.messages,
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, input_schema }) => ({ name, description, input_schema })),
    }),
  };
}

const fitting = (heard: Heard, room: number): Heard => ({
  ...heard,
  said: heard.said.map((said) => ({ ...said, message: withinLimit(said.message, room) })),
});

const tooLongText = ({ text }: ModelMessage, room: number): string =>
  `Your message of ${text.length} characters is too long for the model, which takes about ${room} in all. Put the text into a file of the workspace and ask me to work with that, or send it in parts.`;

/** The exchange is over: one with a task is done, any other waits for the next word. */
function answered({ frame, profile }: LoopStep, state: LoopState, text: string): FrameOut {
  const next: LoopState = { ...state, turn: state.turn + 1, exchange_at: state.messages.length };
  const done = profile.task !== undefined;
  return { step: frame.step, next_step: `think/${next.turn}`, state: toState(next), text, done };
}

/** An answer that is not the model's. It is told at once, since nothing streamed. */
function answer(step: LoopStep, state: LoopState, text: string): FrameOut {
  step.context.emit({ kind: "delta", text });
  const messages: ModelMessage[] = [...state.messages, { role: "assistant", text, tool_calls: [] }];
  return answered(step, { ...state, messages }, text);
}

/**
 * LOOP-4. A request that is too large is made smaller. Anything else that trying again does not change is told to who asked, and
 * what could not be answered is forgotten, since it would be refused again and again. A session with a task fails instead, with
 * all that it knows: a person can change the task's course and resume it.
 */
async function notAccepted(step: LoopStep, state: LoopState, error: unknown, filled: number): Promise<FrameOut> {
  if (!(error instanceof StepError)) throw error;
  const { context, profile } = step;
  const isFinal = !error.retryable || (error.code === "bad_output" && context.attempt.number >= MOST_ATTEMPTS);
  if (!isFinal) throw error;
  // The provider counts otherwise: half of what was sent may pass.
  const window_share = (state.window_share * Math.min(1, filled)) / 2;
  if (error.code === "context_too_large" && window_share >= SMALLEST_SHARE) {
    const smaller = { ...state, window_share };
    if (cutAt(state.messages, roomFor(step.llm, smaller)) !== null)
      return onward(step, smaller, `condense/${state.turn}`);
  }
  if (profile.task !== undefined) throw error;
  const asked = state.messages.slice(state.exchange_at).filter(({ role }) => role === "user");
  const question = asked.map(({ text }) => text).join("\n");
  const kept: ModelMessage[] = [
    ...state.messages.slice(0, state.exchange_at),
    { role: "user", text: shorten(question, LEFT_OF_QUESTION) },
  ];
  return answer(step, { ...state, messages: kept }, `I could not answer that: ${error.message}.`);
}
