import { type StepContext, StepError } from "../moniker.ts";
import type { Workspace } from "../tools/workspace.ts";
import { backgroundText, conversationLines, type Memory, type Question, transcript, withBackground } from "./memory.ts";
import { parseContextPrompt } from "./parse-context-prompt.ts";

/** What is said, and what has to be confirmed first, if anything. */
export type Answered = { memory: Memory; text: string; question?: Question };

/**
 * The two prompts by which chat surfaces save and load a conversation. They do what they say, with a model and without
 * one: the file is written and read here, the model only words the summary.
 */
export async function contextPrompt(message: string, memory: Memory, context: StepContext): Promise<Answered | null> {
  const prompt = parseContextPrompt(message);
  if (!prompt) return null;
  const { verb, path, reply } = prompt;
  const work = verb === "save" ? saveContext : loadContext;
  return answering(memory, verb, () => work(path, reply, memory, context));
}

async function saveContext(
  path: string,
  reply: string,
  memory: Memory,
  { llm, tools, signal, emit }: StepContext,
): Promise<Answered> {
  const everything = [memory.summary, transcript(memory.turns)].filter(Boolean).join("\n\n");
  const quiet = { signal, emit: (news: Parameters<typeof emit>[0]) => news.kind === "usage" && emit(news) };
  const summary =
    llm && everything
      ? await llm.summarize(conversationLines(memory), "so that another conversation can build on it", quiet)
      : everything;
  const background = backgroundText(memory);
  const parts = [HEADING, summary || "Nothing was said yet.", background && `## Background\n\n${background}`];
  const text = `${parts.filter(Boolean).join("\n\n")}\n`;
  // A save makes way for the next one of its name; what somebody else wrote is asked about.
  if (await isForeign(tools.workspace, path)) return { memory, ...overwriting(path, text) };
  await tools.workspace.write(path, text);
  return { memory, text: reply };
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

async function loadContext(path: string, reply: string, memory: Memory, { tools }: StepContext): Promise<Answered> {
  return { memory: withBackground(memory, path, await tools.workspace.read(path)), text: reply };
}

/** A file that cannot be used is an answer, not a failure of the step. */
async function answering(memory: Memory, verb: string, work: () => Promise<Answered>): Promise<Answered> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StepError && error.code.startsWith("file_"))
      return { memory, text: `I could not ${verb} it: ${error.message}.` };
    throw error;
  }
}
