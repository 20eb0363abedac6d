import type { FrameOut } from "../../domain/step-frame.ts";
import { extract } from "../extract.ts";
import type { ModelMessage } from "../llm/model-turn.ts";
import { StepError } from "../moniker.ts";
import { conversationLines } from "./conversation-lines.ts";
import { hear, withHeard } from "./heard.ts";
import { type LoopStep, onward } from "./loop-frames.ts";
import type { LoopState } from "./loop-state.ts";
import { requestFor } from "./think.ts";
import { cutAt, isRoomy, roomFor, sizeOf, withinLimit, withoutOldOutputs } from "./window.ts";

const LONGEST_SUMMARY = 8000;
const PURPOSE =
  "so that the work can go on without it: keep the goal, what was decided and done, what was found out with names, numbers and paths, and what is still to do";

/** Makes room: old outputs of tools shrink, and where that is not enough the oldest messages become a summary. */
export async function condense(step: LoopStep, before: LoopState): Promise<FrameOut> {
  const room = roomFor(step.llm, before);
  const heard = hear(step.frame.guidance ?? []);
  const said = heard.said.map((one) => ({ ...one, message: withinLimit(one.message, room) }));
  const all = withHeard(before, { ...heard, said });
  const state = { ...all, messages: withoutOldOutputs(all.messages) };
  const next_step = `think/${state.turn}`;
  const cut = isRoomy(sizeOf(await requestFor(step, state)), room) ? null : cutAt(state.messages, room);
  if (cut === null) return onward(step, state, next_step, { notes: "Shortened old outputs of tools." });
  // The task itself stays.
  const pinned = step.profile.task === undefined ? 0 : 1;
  const old = state.messages.slice(pinned, cut);
  const summary = await summaryOf(step, state.summary, old, room);
  const kept = state.messages.slice(cut);
  const opening: ModelMessage[] =
    pinned === 0 && kept[0]?.role !== "user"
      ? [{ role: "user", text: "(Go on; what came before is summarised.)" }]
      : [];
  const messages = [...state.messages.slice(0, pinned), ...opening, ...kept];
  const exchange_at = Math.max(0, Math.min(messages.length, state.exchange_at - old.length + opening.length));
  const notes = `Summarised ${old.length} older messages.`;
  return onward(step, { ...state, messages, summary, exchange_at }, next_step, { notes });
}

/** Where the model cannot do it, the most telling sentences have to do. */
async function summaryOf(
  { llm, context }: LoopStep,
  summary: string,
  old: readonly ModelMessage[],
  room: number,
): Promise<string> {
  const text = conversationLines(summary, old).slice(-Math.floor(room / 2));
  const quiet: Parameters<typeof llm.summarize>[2] = {
    signal: context.signal,
    emit: (news) => news.kind !== "delta" && context.emit(news),
  };
  try {
    return (await llm.summarize(text, PURPOSE, quiet)).slice(0, LONGEST_SUMMARY);
  } catch (error) {
    if (!(error instanceof StepError) || error.retryable) throw error;
    return extract(old.map((message) => message.text).join("\n"), LONGEST_SUMMARY);
  }
}
