import type { Schemas } from "../../client/client.ts";
import { coloured, printable, type Style } from "../../surfaces/cli/output.ts";
import { wrapped } from "./side-by-side.ts";

type Step = Schemas["Step"];

const WIDTH = 88;
const LABEL = 9;
const STYLES = { agent: "green", tool: "cyan" } as const satisfies Record<string, Style>;
type Line = { who: keyof typeof STYLES | "you"; text: string };

/** Prints the demo: headings, and lines that begin with the speaker. */
export class Narrator {
  #scenes = 0;

  scene(title: string): void {
    this.#scenes += 1;
    console.log(`\n${coloured("bold", `${this.#scenes}  ${title}`)}`);
  }

  line(label: string, text: string, style: Style = "gray"): void {
    const [first = "", ...others] = wrapped(printable(text), WIDTH - LABEL - 3);
    console.log(`   ${coloured(style, label.padEnd(LABEL))}${first}`);
    for (const other of others) console.log(`   ${" ".repeat(LABEL)}${other}`);
  }

  plain(text: string): void {
    console.log(`   ${text}`);
  }

  /** What people did was printed when they did it. */
  step(step: Step): void {
    for (const { who, text } of linesOf(step)) if (who !== "you") this.line(who, text, STYLES[who]);
  }
}

/** A step for people: the model's text, or a tool and its result. */
export function linesOf({ text, calls, guidance, directives }: Step): Line[] {
  if (directives?.ask) return [];
  const tools = calls.filter(({ kind }) => kind === "tool");
  if (tools.length > 0)
    return tools.map(({ name, input, output }) => ({
      who: "tool",
      text: `${name} ${subjectOf(input)} → ${firstLine(output)}`,
    }));
  if (text !== null) return [{ who: "agent", text }];
  return guidance.some(isAnswer) ? [{ who: "you", text: "answered for the tool" }] : [];
}

const isAnswer = (item: unknown): boolean => typeof item === "object" && item !== null && "answer" in item;

/** The argument that distinguishes one call from the next. */
function subjectOf(input: unknown): string {
  const { invoice, path } = (input ?? {}) as { invoice?: string; path?: string };
  return invoice ?? path ?? "";
}

const LONGEST_OUTPUT = 40;

function firstLine(output: unknown): string {
  const text = (typeof output === "string" ? output : JSON.stringify(output)).trim().replaceAll("\n", ", ");
  return text.length > LONGEST_OUTPUT ? `${text.slice(0, LONGEST_OUTPUT - 1)}…` : text;
}
