import { conversationLines } from "../agent/conversation-lines.ts";
import type { LoopState, Question } from "../agent/loop-state.ts";
import { type StepContext, StepError } from "../moniker.ts";
import type { Workspace } from "../tools/workspace.ts";
import { transcript, withBackground } from "./memory.ts";
import { parseContextPrompt } from "./parse-context-prompt.ts";

/** What is said, and what has to be confirmed first, if anything. */
export type Answered = { state: LoopState; text: string; question?: Question | null };

/**
 * The prompts by which chat surfaces save and load a conversation. They do what they say, with a model and without
 * one: the file is written and read here, the model only words the summary.
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
  const quiet = { signal, emit: (news: Parameters<typeof emit>[0]) => news.kind !== "delta" && emit(news) };
  const summary =
    llm && everything
      ? await llm.summarize(
          conversationLines(state.summary, state.messages),
          "so that another conversation can build on it",
          quiet,
        )
      : everything;
  // What was loaded has files of its own: copied, it would grow with every save.
  const loaded = state.background.map(({ path: file }) => file).join(", ");
  const parts = [HEADING, summary || "Nothing was said yet.", loaded && `(Loaded as background: ${loaded})`];
  const text = `${parts.filter(Boolean).join("\n\n")}\n`;
  // A save makes way for the next one of its name; what somebody else wrote is asked about.
  if (await isForeign(tools.workspace, path)) return { state, ...overwriting(path, text) };
  await tools.workspace.write(path, text);
  return { state, text: reply };
}

/** Every save begins with it. */
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
  const asked = `${path} exists already and is not a saved conversation. Shall I overwrite it? (yes or no)`;
  return { text: asked, question: { text: asked, tool: "write_file", args: { path, text } } };
}

/** What cannot be done is an answer, not a failure of the step: it would fail again and again. */
async function answering(state: LoopState, verb: string, work: () => Promise<Answered>): Promise<Answered> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StepError && !error.retryable)
      return { state, text: `I could not ${verb} it: ${error.message}.` };
    throw error;
  }
}
