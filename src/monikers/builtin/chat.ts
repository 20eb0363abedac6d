import { z } from "zod";
import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import { STOP_PROMPT } from "../../domain/stop-prompt.ts";
import { loopStep } from "../agent/agent-loop.ts";
import { type LoopState, type Question, recall, toState } from "../agent/loop-state.ts";
import { parseGuidance, withGuidance } from "../agent/parse-guidance.ts";
import { toolGlobs } from "../agent/tool-globs.ts";
import { type Answered, contextPrompt } from "../chat/contexts.ts";
import { runFileTool } from "../chat/file-tools.ts";
import { condenseOffline, fromTurns, remember } from "../chat/memory.ts";
import { answerOffline } from "../chat/offline.ts";
import type { ModelMessage } from "../llm/model-turn.ts";
import { defineMoniker, type StepContext } from "../moniker.ts";

const INSTRUCTIONS =
  "You are a helpful assistant with tools and a workspace of files. Be brief and exact; say so when you do not know.";
const YES_OR_NO = [
  { value: "yes", label: "Yes" },
  { value: "no", label: "No" },
];

type Params = { instructions?: string | undefined; tools?: string[] | undefined };

/** A conversation with tools. Its knowledge is in its state; saved contexts are files that any chat can load. */
export const chat = defineMoniker<Params>({
  name: "chat",
  kind: "reactive",
  description: "Talks, keeps the conversation, and works with tools and the files of the workspace.",
  params: z.object({
    instructions: z.string().max(20_000).optional().describe("How the agent should behave."),
    tools: toolGlobs,
  }),
  first_step: "think/1",
  migrate: fromTurns,
  async step(frame, context) {
    const state = recall(frame.state);
    const { inputs } = parseGuidance(frame.guidance ?? []);
    if (inputs.at(-1)?.message.text === STOP_PROMPT)
      return answered(frame, context, { state: withoutCalls(state), text: "Stopped." });
    const own = state.calls.length === 0 ? await ownAnswer(frame, state, context) : null;
    if (own) return own;
    const { llm, params } = context;
    const { instructions = INSTRUCTIONS, tools } = params;
    if (llm) return loopStep({ frame, context, llm, profile: { instructions, tools } });
    const question = inputs.map(({ message }) => message.text).join("\n");
    const offline = await answerOffline(question, state, context.tools.workspace);
    const fileQuestion =
      offline.kind === "question" && offline.tool !== undefined
        ? { text: offline.text, tool: offline.tool, args: offline.args ?? {} }
        : null;
    return answered(frame, context, { state, text: offline.text, question: fileQuestion });
  },
});

/** LOOP-1: calls that are no longer made get a result as well. */
function withoutCalls(state: LoopState): LoopState {
  const results = state.calls.map(({ call_id, name }, at): ModelMessage => {
    const text =
      at === 0 ? "Stopped by a person; whether it took effect is not known." : "Not made: a person stopped it.";
    return { role: "tool", call_id, name, text, is_error: true };
  });
  const messages = [...state.messages, ...results, ...state.heard];
  const none = { calls: [], heard: [], finished: 0, awaited: null, is_once: false, is_approved: false };
  return { ...state, ...none, messages };
}

/** Answers without the model: the prompts that save and load a conversation, and replies to a question about a file. */
async function ownAnswer(frame: FrameIn, state: LoopState, context: StepContext): Promise<FrameOut | null> {
  const message = parseGuidance(frame.guidance ?? [])
    .inputs.map(({ message: { text } }) => text)
    .join("\n");
  const { question } = state;
  const answer =
    (question && (await answerToQuestion(message, state, question, context))) ??
    (await contextPrompt(message, state, context));
  return answer && answered(frame, context, answer);
}

/** Yes does what was asked about, no leaves it; anything else is a new message. */
async function answerToQuestion(
  message: string,
  state: LoopState,
  { tool, args }: Question,
  { tools }: StepContext,
): Promise<Answered | null> {
  const reply = message.trim().toLowerCase().replace(/[.!]$/, "");
  if (["yes", "y", "да", "ok"].includes(reply)) {
    const { text } = await runFileTool(tools.workspace, tool, args, true);
    return { state, text };
  }
  return ["no", "n", "нет", "cancel"].includes(reply) ? { state, text: "I left it as it is." } : null;
}

/** Emits at once, since nothing streamed. */
function answered(frame: FrameIn, { emit, llm }: StepContext, { state, text, question = null }: Answered): FrameOut {
  emit({ kind: "delta", text });
  const guided = withGuidance(state, parseGuidance(frame.guidance ?? []));
  const remembered = remember(guided, { role: "assistant", text, tool_calls: [] });
  const turn = state.turn + 1;
  const after = { ...(llm ? remembered : condenseOffline(remembered)), turn, question };
  const asking = question ? { data: { question }, ask: { text: question.text, choices: YES_OR_NO } } : {};
  return { step: frame.step, next_step: `think/${turn}`, state: toState(after), text, done: false, ...asking };
}
