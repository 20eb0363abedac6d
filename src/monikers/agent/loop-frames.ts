import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import { matchesGlob } from "../../domain/step-globs.ts";
import type { OfferedTool } from "../../tools/tool.ts";
import { shorten } from "../extract.ts";
import type { Llm } from "../llm/llm.ts";
import type { StepContext } from "../moniker.ts";
import { approvalOf } from "./decisions.ts";
import { type LoopState, toState } from "./loop-state.ts";

/** How monikers built on the loop differ. */
type Profile = {
  instructions: string;
  /** Globs over the names of allowed tools; all if absent. */
  tools?: readonly string[] | undefined;
  /** Whether only read-only tools are allowed. */
  only_reads?: boolean;
  /** A session with a task ends when it is done. Without one it answers its guidance and rests. */
  task?: string;
};

/** A loop step's frame and what it works with. */
export type LoopWork = { frame: FrameIn; context: StepContext; llm: Llm; profile: Profile };
/** With the tools for the model, listed once per step. */
export type LoopStep = LoopWork & { tools: readonly OfferedTool[] };

const LONGEST_NAME = 200;

export async function offeredTools({ context, profile }: LoopWork): Promise<OfferedTool[]> {
  const tools = await context.tools.list();
  return tools.filter(({ name, policy, read_only }) => {
    const isAllowed = profile.tools?.some((glob) => matchesGlob(glob, name)) ?? true;
    return isAllowed && policy !== "deny" && (read_only || !profile.only_reads);
  });
}

/** LOOP-3. */
export const isOnce = ({ read_only, idempotent }: Pick<OfferedTool, "read_only" | "idempotent">): boolean =>
  !read_only && !idempotent;

type More = Pick<FrameOut, "text" | "data" | "notes" | "actions">;

/** The frame that leads to the next call, or to the model if none is left. */
export function toNextCall(step: LoopStep, state: LoopState, more: More = {}): FrameOut {
  const [call] = state.calls;
  if (!call) return continueAt(step, { ...state, awaited: null, is_once: false }, `think/${state.turn}`, more);
  const tool = step.tools.find(({ name }) => name === call.name);
  const asks = tool?.policy === "ask" && !state.is_approved && !state.always.includes(call.name);
  const is_once = tool !== undefined && isOnce(tool);
  const next: LoopState = { ...state, awaited: asks ? { kind: "approval" } : null, is_once };
  if (asks) return rest(step, next, { ...more, ask: approvalOf(call) });
  return { ...continueAt(step, next, actToken(next), more), ...(is_once && { once: true }) };
}

/** The frame of a call that waits: its step is repeated afterwards. */
export function rest(
  { frame, profile }: LoopStep,
  state: LoopState,
  { ask, wait, ...more }: More & Pick<FrameOut, "ask" | "wait">,
): FrameOut {
  // In a plain chat the question is shown as the agent's text.
  const question = profile.task === undefined ? ask?.text : undefined;
  const text = [more.text, question].filter((part) => part !== undefined).join("\n\n");
  return {
    step: frame.step,
    next_step: actToken(state),
    state: toState(state),
    done: false,
    ...more,
    ...(text !== "" && { text }),
    ...(ask && { ask }),
    ...(wait && { wait }),
    ...(state.is_once && { once: true }),
  };
}

/** A session without a task would rest after each step, so the frame asks to continue. */
export const continueAt = (
  { frame, profile }: LoopStep,
  state: LoopState,
  next_step: string,
  more: More = {},
): FrameOut => ({
  step: frame.step,
  next_step,
  state: toState(state),
  done: false,
  ...more,
  ...(profile.task === undefined && { go_on: true }),
});

/** The name comes from the model and may be anything. */
function actToken({ turn, finished, calls }: LoopState): string {
  return `act/${turn}.${finished + 1}/${shorten(calls[0]?.name ?? "", LONGEST_NAME)}`;
}
