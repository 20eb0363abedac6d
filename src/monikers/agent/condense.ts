import type { FrameOut } from "../../domain/step-frame.ts";
import { extract } from "../extract.ts";
import type { ModelMessage } from "../llm/model-turn.ts";
import { StepError } from "../moniker.ts";
import { conversationLines } from "./conversation-lines.ts";
import { continueAt, type LoopStep } from "./loop-frames.ts";
import type { LoopState } from "./loop-state.ts";
import { parseGuidance, withGuidance } from "./parse-guidance.ts";
import { requestFor } from "./think.ts";
import { cutAt, isRoomy, roomFor, sizeOf, withinLimit, withoutOldOutputs } from "./window.ts";

const LONGEST_SUMMARY = 8000;
const PURPOSE =
  "so that the work can go on without it: keep the goal, what was decided and done, what was found out with names, numbers and paths, and what is still to do";

/** Makes room: truncates old tool outputs and, if that is not enough, summarizes the oldest messages. */
export async function condense(step: LoopStep, before: LoopState): Promise<FrameOut> {
  const room = roomFor(step.llm, before);
  const guidance = parseGuidance(step.frame.guidance ?? []);
  const inputs = guidance.inputs.map((one) => ({ ...one, message: withinLimit(one.message, room) }));
  const all = withGuidance(before, { ...guidance, inputs });
  const state = { ...all, messages: withoutOldOutputs(all.messages) };
  const next_step = `think/${state.turn}`;
  const cut = isRoomy(sizeOf(await requestFor(step, state)), room) ? null : cutAt(state.messages, room);
  if (cut === null) return continueAt(step, state, next_step, { notes: "Shortened old outputs of tools." });
  // The task itself stays.
  const pinned = step.profile.task === undefined ? 0 : 1;
  const old = state.messages.slice(pinned, cut);
  const summary = await summaryOf(step, state.summary, old, room);
  const recent = state.messages.slice(cut);
  const opening: ModelMessage[] =
    pinned === 0 && recent[0]?.role !== "user"
      ? [{ role: "user", text: "(Go on; what came before is summarised.)" }]
      : [];
  const messages = [...state.messages.slice(0, pinned), ...opening, ...recent];
  const exchange_at = Math.max(0, Math.min(messages.length, state.exchange_at - old.length + opening.length));
  const notes = `Summarised ${old.length} older messages.`;
  return continueAt(step, { ...state, messages, summary, exchange_at }, next_step, { notes });
}

/** Falls back to extracting the most informative sentences if the model cannot summarize. */
async function summaryOf(
  { llm, context }: LoopStep,
  summary: string,
  old: readonly ModelMessage[],
  room: number,
): Promise<string> {
  const text = conversationLines(summary, old).slice(-Math.floor(room / 2));
  const quiet: Parameters<typeof llm.summarize>[2] = {
    signal: context.signal,
    emit: (progress) => progress.kind !== "delta" && context.emit(progress),
  };
  try {
    return (await llm.summarize(text, PURPOSE, quiet)).slice(0, LONGEST_SUMMARY);
  } catch (error) {
    if (!(error instanceof StepError) || error.retryable) throw error;
    return extract(old.map((message) => message.text).join("\n"), LONGEST_SUMMARY);
  }
}
