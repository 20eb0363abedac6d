import { z } from "zod";
import type { FrameIn, FrameOut } from "../../domain/step-frame.ts";
import { loopStep } from "../agent/agent-loop.ts";
import { shorten } from "../extract.ts";
import { guidanceText } from "../guidance.ts";
import { defineMoniker, type StepContext } from "../moniker.ts";
import { questionWords, rankLines } from "../tools/line-pieces.ts";

const INSTRUCTIONS =
  "You find out the answer to a question from the files of the workspace, from what was said before (memory/search) and from whatever other tools you have. Search with several words, also in other languages and spellings; read what you find. Answer in the language of the question, quote what the answer rests on, and name the path of each quote. Say so if you do not find it.";
const MOST_FILES = 8;
const QUOTES_PER_FILE = 3;
const LONGEST_QUOTE = 1000;

/** The state between steps. A missing or malformed list counts as empty. */
const passageSchema = z.object({ path: z.string(), line: z.number(), text: z.string() });
const stateSchema = z.object({
  wanted: z.array(z.string()).catch([]),
  paths: z.array(z.string()).catch([]),
  found: z.array(z.object({ path: z.string(), quotes: z.array(passageSchema) })).catch([]),
});
type Params = { question: string };

/** With a model it runs the agent loop with read-only tools; without one it searches, reads the matches and quotes them. */
export const research = defineMoniker({
  name: "research",
  kind: "finite",
  description: "Answers a question from the files of the workspace and other sources, with quotes and their paths.",
  params: z.object({ question: z.string().min(1).max(4000).describe("What to find out.") }),
  first_step: "search/1",
  async step(frame, context) {
    const { llm } = context;
    if (llm)
      return loopStep({
        frame,
        context,
        llm,
        profile: { instructions: INSTRUCTIONS, only_reads: true, task: context.params.question },
      });
    const phase = frame.step.split("/")[0];
    if (phase === "read") return readNext(frame, context);
    if (phase === "report") return report(frame, context);
    return search(frame, context);
  },
});

async function search({ step, guidance = [] }: FrameIn, { params, tools }: StepContext<Params>): Promise<FrameOut> {
  const query = [params.question, ...guidance.map((item) => guidanceText(item) ?? "")].join(" ");
  const words = questionWords(query);
  const passages = await tools.workspace.search(words, 500);
  const hits = Map.groupBy(passages, ({ path }) => path);
  const paths = [...hits]
    .sort((a, b) => b[1].length - a[1].length)
    .slice(0, MOST_FILES)
    .map(([path]) => path);
  const text =
    paths.length > 0 ? `Found ${passages.length} lines in ${paths.length} files.` : "Found nothing in the workspace.";
  const next_step = paths.length > 0 ? "read/1" : "report";
  return { step, next_step, state: { wanted: words, paths, found: [] }, text, done: false };
}

async function readNext({ step, state }: FrameIn, { tools }: StepContext<Params>): Promise<FrameOut> {
  const { paths, found: files, wanted: words } = stateSchema.parse(state);
  const path = paths[files.length] as string;
  const quotes = (await rankLines(await tools.workspace.read(path), words))
    .slice(0, QUOTES_PER_FILE)
    .map(({ line, text }) => ({ path, line, text: shorten(text, LONGEST_QUOTE) }));
  const all = [...files, { path, quotes }];
  const next_step = all.length < paths.length ? `read/${all.length + 1}` : "report";
  return {
    step,
    next_step,
    state: { ...state, found: all },
    text: `Read ${path}: ${quotes.length} quotes.`,
    done: false,
  };
}

async function report({ step, state }: FrameIn, context: StepContext<Params>): Promise<FrameOut> {
  const { question } = context.params;
  const files = stateSchema.parse(state).found.filter(({ quotes }) => quotes.length > 0);
  const quotes = files.flatMap((file) => file.quotes);
  const lines = quotes.map(({ path, line, text }) => `> ${text}\n  (${path}:${line})`);
  const evidence = lines.length > 0 ? lines.join("\n") : "The workspace says nothing about it.";
  const text = `${question}\n\n${evidence}`;
  return { step, next_step: "done", state, text, data: { question, quotes }, done: true };
}
