import type { FrameOut } from "../../domain/step-frame.ts";
import { shorten } from "../extract.ts";
import type { ModelMessage, ModelReply, ModelRequest } from "../llm/model-turn.ts";
import { StepError } from "../moniker.ts";
import { instructionsFor } from "./instructions.ts";
import { continueAt, type LoopStep, toNextCall } from "./loop-frames.ts";
import { type LoopState, toState } from "./loop-state.ts";
import { type ParsedGuidance, parseGuidance, withGuidance, withUnreadReports } from "./parse-guidance.ts";
import { cutAt, isTooLong, roomFor, sizeOf, withinLimit } from "./window.ts";

/** How often an unusable reply is requested again before the exchange ends. */
const MOST_ATTEMPTS = 3;
/** How much is kept of a question that was refused. */
const LEFT_OF_QUESTION = 500;
/** Below this share the request is not shrunk further. */
const SMALLEST_SHARE = 0.005;

/** Calls the model once. */
export async function think(step: LoopStep, before: LoopState): Promise<FrameOut> {
  const { frame, llm, profile } = step;
  const guidance = parseGuidance(frame.guidance ?? []);
  const room = roomFor(llm, before);
  const state = withUnreadReports(withGuidance(before, fitting(guidance, room)));
  const tooLong = guidance.inputs.find(({ message }) => isTooLong(message, room));
  if (tooLong && profile.task === undefined) return answer(step, state, tooLongText(tooLong.message, room));
  const request = await requestFor(step, state);
  if (sizeOf(request) > room && cutAt(state.messages, room) !== null)
    return continueAt(step, state, `condense/${state.turn}`);
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
  return toNextCall(step, { ...state, messages, calls: message.tool_calls, finished: 0, is_approved: false }, text);
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

const fitting = (guidance: ParsedGuidance, room: number): ParsedGuidance => ({
  ...guidance,
  inputs: guidance.inputs.map((input) => ({ ...input, message: withinLimit(input.message, room) })),
});

const tooLongText = ({ text }: ModelMessage, room: number): string =>
  `Your message of ${text.length} characters is too long for the model, which takes about ${room} in all. Put the text into a file of the workspace and ask me to work with that, or send it in parts.`;

/** Ends the exchange: a session with a task is done, any other waits for the next message. */
function answered({ frame, profile }: LoopStep, state: LoopState, text: string): FrameOut {
  const next: LoopState = { ...state, turn: state.turn + 1, exchange_at: state.messages.length };
  const done = profile.task !== undefined;
  return { step: frame.step, next_step: `think/${next.turn}`, state: toState(next), text, done };
}

/** An answer that is not the model's. It is emitted at once, since nothing streamed. */
function answer(step: LoopStep, state: LoopState, text: string): FrameOut {
  step.context.emit({ kind: "delta", text });
  const messages: ModelMessage[] = [...state.messages, { role: "assistant", text, tool_calls: [] }];
  return answered(step, { ...state, messages }, text);
}

/**
 * LOOP-4. Shrinks a request that is too large. Any other error that a retry would not change becomes the answer, and the
 * question is dropped, since it would be refused every time. A session with a task fails instead and keeps its state: a person
 * can redirect and resume it.
 */
async function notAccepted(step: LoopStep, state: LoopState, error: unknown, filled: number): Promise<FrameOut> {
  if (!(error instanceof StepError)) throw error;
  const { context, profile } = step;
  const isFinal = !error.retryable || (error.code === "bad_output" && context.attempt.number >= MOST_ATTEMPTS);
  if (!isFinal) throw error;
  // The provider counts differently: half of what was sent may pass.
  const window_share = (state.window_share * Math.min(1, filled)) / 2;
  if (error.code === "context_too_large" && window_share >= SMALLEST_SHARE) {
    const smaller = { ...state, window_share };
    if (cutAt(state.messages, roomFor(step.llm, smaller)) !== null)
      return continueAt(step, smaller, `condense/${state.turn}`);
  }
  if (profile.task !== undefined) throw error;
  const questions = state.messages.slice(state.exchange_at).filter(({ role }) => role === "user");
  const question = questions.map(({ text }) => text).join("\n");
  const messages: ModelMessage[] = [
    ...state.messages.slice(0, state.exchange_at),
    { role: "user", text: shorten(question, LEFT_OF_QUESTION) },
  ];
  return answer(step, { ...state, messages }, `I could not answer that: ${error.message}.`);
}
