import { conversationLines } from "../agent/conversation-lines.ts";
import type { LoopState, Question } from "../agent/loop-state.ts";
import { type StepContext, StepError } from "../moniker.ts";
import type { Workspace } from "../tools/workspace.ts";
import { transcript, withBackground } from "./memory.ts";
import { parseContextPrompt } from "./parse-context-prompt.ts";

/** An answer, and the question to confirm first, if any. */
export type Answered = { state: LoopState; text: string; question?: Question | null };

/**
 * The prompts with which chat surfaces save and load a conversation. They work with and without a model: the file is written
 * and read here, the model only writes the summary.
 */
export async function contextPrompt(message: string, state: LoopState, context: StepContext): Promise<Answered | null> {
  const prompt = parseContextPrompt(message);
  if (!prompt) return null;
  const { verb, path, reply } = prompt;
  if (verb === "save") return answering(state, verb, () => saveContext(path, reply, state, context));
  const others = verb === "add" ? state.background : [];
  return answering(state, "load", async () => {
    const loaded = { path, text: await context.tools.workspace.read(path) };
    return { state: withBackground(state, loaded, others, context.llm), text: reply };
  });
}

async function saveContext(
  path: string,
  reply: string,
  state: LoopState,
  { llm, tools, signal, emit }: StepContext,
): Promise<Answered> {
  const everything = [state.summary, transcript(state.messages)].filter(Boolean).join("\n\n");
  const quiet = { signal, emit: (progress: Parameters<typeof emit>[0]) => progress.kind !== "delta" && emit(progress) };
  const summary =
    llm && everything
      ? await llm.summarize(
          conversationLines(state.summary, state.messages),
          "so that another conversation can build on it",
          quiet,
        )
      : everything;
  // Loaded contexts have their own files: copied in, they would grow with every save.
  const loaded = state.background.map(({ path: file }) => file).join(", ");
  const parts = [HEADING, summary || "Nothing was said yet.", loaded && `(Loaded as background: ${loaded})`];
  const text = `${parts.filter(Boolean).join("\n\n")}\n`;
  // A save replaces an earlier save of the same name; anything else needs a confirmation.
  if (await isForeign(tools.workspace, path)) return { state, ...overwriting(path, text) };
  await tools.workspace.write(path, text);
  return { state, text: reply };
}

/** The first line of every save. */
const HEADING = "# Saved conversation";

async function isForeign(workspace: Workspace, path: string): Promise<boolean> {
  if (!(await workspace.has(path))) return false;
  const present = await workspace.read(path).catch((error: unknown) => {
    if (error instanceof StepError) return "";
    throw error;
  });
  return !present.startsWith(`${HEADING}\n`);
}

function overwriting(path: string, text: string): { text: string; question: Question } {
  const question = `${path} already exists and is not a saved conversation. Shall I overwrite it? (yes or no)`;
  return { text: question, question: { text: question, tool: "write_file", args: { path, text } } };
}

/** A refusal is an answer, not a failed step: it would fail every time. */
async function answering(state: LoopState, verb: string, work: () => Promise<Answered>): Promise<Answered> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StepError && !error.retryable)
      return { state, text: `I could not ${verb} it: ${error.message}.` };
    throw error;
  }
}
