import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import { fitsGlob } from "../../domain/step-globs.ts";
import type { OfferedTool } from "../../tools/tool.ts";
import { shorten } from "../extract.ts";
import type { Llm } from "../llm/llm.ts";
import type { StepContext } from "../moniker.ts";
import { approvalOf } from "./decisions.ts";
import { type LoopState, toState } from "./loop-state.ts";

/** What makes one moniker of the loop differ from another. */
type Profile = {
  instructions: string;
  /** Globs over the names of the tools that it may use; all where absent. */
  tools?: readonly string[] | undefined;
  /** Whether it may only use tools that change nothing. */
  only_reads?: boolean;
  /** The task of one that ends when it is done. One without a task answers what it is told, and rests. */
  task?: string;
};

/** What a step of the loop works with, and the frame it came with. */
export type LoopWork = { frame: FrameIn; context: StepContext; llm: Llm; profile: Profile };
/** The tools that the model is told of are listed once in a step. */
export type LoopStep = LoopWork & { tools: readonly OfferedTool[] };

const LONGEST_NAME = 200;

export async function offeredTools({ context, profile }: LoopWork): Promise<OfferedTool[]> {
  const tools = await context.tools.list();
  return tools.filter(({ name, policy, read_only }) => {
    const isWanted = profile.tools?.some((glob) => fitsGlob(glob, name)) ?? true;
    return isWanted && policy !== "deny" && (read_only || !profile.only_reads);
  });
}

/** LOOP-3. */
export const isOnce = ({ read_only, idempotent }: Pick<OfferedTool, "read_only" | "idempotent">): boolean =>
  !read_only && !idempotent;

type More = Pick<FrameOut, "text" | "data" | "notes" | "actions">;

/** The frame that leads on to the next call, or to the model where none is left. */
export function goOn(step: LoopStep, state: LoopState, more: More = {}): FrameOut {
  const [call] = state.calls;
  if (!call) return onward(step, { ...state, awaited: null, is_once: false }, `think/${state.turn}`, more);
  const tool = step.tools.find(({ name }) => name === call.name);
  const asks = tool?.policy === "ask" && !state.is_approved && !state.always.includes(call.name);
  const is_once = tool !== undefined && isOnce(tool);
  const next: LoopState = { ...state, awaited: asks ? { kind: "approval" } : null, is_once };
  if (asks) return rest(step, next, { ...more, ask: approvalOf(call) });
  return { ...onward(step, next, actToken(next), more), ...(is_once && { once: true }) };
}

/** The frame of a call that waits: its step comes once more. */
export function rest(
  { frame, profile }: LoopStep,
  state: LoopState,
  { ask, wait, ...more }: More & Pick<FrameOut, "ask" | "wait">,
): FrameOut {
  // Who only chats with it sees the question as what it says.
  const asked = profile.task === undefined ? ask?.text : undefined;
  const text = [more.text, asked].filter((part) => part !== undefined).join("\n\n");
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

/** A session without a task would rest after each step: it is told to go on. */
export const onward = (
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

/** The name comes from the model: it may be anything. */
function actToken({ turn, finished, calls }: LoopState): string {
  return `act/${turn}.${finished + 1}/${shorten(calls[0]?.name ?? "", LONGEST_NAME)}`;
}
