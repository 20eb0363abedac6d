import { z } from "zod";
import { isObject, type JsonValue } from "../../domain/json.ts";
import { type Answered, contextPrompt } from "../chat/contexts.ts";
import { runFileTool } from "../chat/file-tools.ts";
import {
  backgroundLines,
  condense,
  conversationLines,
  jsonLine,
  type Memory,
  type Question,
  recall,
  remember,
  type Turn,
} from "../chat/memory.ts";
import { answerOffline } from "../chat/offline.ts";
import { guidanceText } from "../guidance.ts";
import type { Llm } from "../llm/llm.ts";
import { defineMoniker, type StepContext, StepError } from "../moniker.ts";

const INSTRUCTIONS =
  "You are a helpful assistant with a workspace of files. Be brief and exact; say so when you do not know.";
const MOST_TOOLS = 12;
const YES_OR_NO = [
  { value: "yes", label: "Yes" },
  { value: "no", label: "No" },
];

type Params = { instructions?: string | undefined };

/** A conversation with workspace tools. What it knows is in its state; saved contexts are files that any chat can load. */
export const chat = defineMoniker<Params>({
  name: "chat",
  kind: "reactive",
  description: "Talks, keeps the conversation, and works with the files of the workspace.",
  params: z.object({ instructions: z.string().max(20_000).optional().describe("How the agent is to behave.") }),
  async step({ step, state, guidance = [] }, context) {
    const said = guidance.map(toTurn);
    const before = recall(state);
    const { memory, text, question } = await reply(said, { ...before, question: null }, before.question, context);
    const remembered = await condense(remember(memory, ...said, { role: "agent", text }), context);
    const next_step = String(Number(step) + 1);
    const after = { ...remembered, question: question ?? null };
    const asking = question ? { data: { question }, ask: { text: question.text, choices: YES_OR_NO } } : {};
    return { step, next_step, state: after, text, done: false, ...asking };
  },
});

/** What came from different people stays apart. */
function toTurn(guidance: JsonValue): Turn {
  const text = guidanceText(guidance) ?? JSON.stringify(guidance);
  const user_id = isObject(guidance) ? guidance["user_id"] : undefined;
  return { role: "user", ...(typeof user_id === "string" ? { user_id } : {}), text };
}

async function reply(
  said: Turn[],
  memory: Memory,
  question: Question | null,
  context: StepContext<Params>,
): Promise<Answered> {
  const message = said.map(({ text }) => text).join("\n");
  const answered =
    (question && (await answerToQuestion(message, memory, question, context))) ??
    (await contextPrompt(message, memory, context));
  if (answered) return told(answered, context);
  if (context.llm) return withModel(context.llm, said, memory, context);
  const offline = await answerOffline(message, memory, context.tools.workspace);
  const asks =
    offline.kind === "question" && offline.tool !== undefined
      ? { question: { text: offline.text, tool: offline.tool, args: offline.args ?? {} } }
      : {};
  return told({ memory, text: offline.text, ...asks }, context);
}

/** A yes carries out what was asked about, a no leaves it; anything else is a new message. */
async function answerToQuestion(
  message: string,
  memory: Memory,
  { tool, args }: Question,
  { tools }: StepContext,
): Promise<Answered | null> {
  const said = message.trim().toLowerCase().replace(/[.!]$/, "");
  if (["yes", "y", "да", "ok"].includes(said)) {
    const { text } = await runFileTool(tools.workspace, tool, args, true);
    return { memory, text };
  }
  return ["no", "n", "нет", "cancel"].includes(said) ? { memory, text: "I left it as it is." } : null;
}

async function withModel(llm: Llm, said: Turn[], memory: Memory, context: StepContext<Params>): Promise<Answered> {
  const conversation = conversationLines({ ...memory, turns: [...memory.turns, ...said] });
  const work: string[] = [];
  for (let tools = 0; tools <= MOST_TOOLS; tools++) {
    const move = await llm.chatTurn(
      {
        instructions: context.params.instructions ?? INSTRUCTIONS,
        background: backgroundLines(memory),
        conversation,
        work: work.join("\n"),
      },
      context,
    );
    if ("text" in move) return { memory, text: move.text };
    context.emit({ kind: "tool", name: move.tool });
    const outcome = await runFileTool(context.tools.workspace, move.tool, move.args);
    if (outcome.kind === "question")
      return told(
        { memory, text: outcome.text, question: { text: outcome.text, tool: move.tool, args: move.args } },
        context,
      );
    work.push(jsonLine({ tool: move.tool, args: move.args, result: outcome.text }));
  }
  throw new StepError("bad_output", `the model used more than ${MOST_TOOLS} tools without an answer`, {
    retryable: false,
  });
}

/** An answer that did not stream is told at once. */
function told(answer: Answered, { emit }: StepContext): Answered {
  emit({ kind: "delta", text: answer.text });
  return answer;
}
