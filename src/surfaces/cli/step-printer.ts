import type { Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import { age, coloured, printable } from "./output.ts";

/** Prints steps; on a terminal a running step's text streams above a progress line. */
export class StepPrinter {
  readonly #json: boolean;
  readonly #live: boolean;
  #streaming: { iteration: number; text: string } | null = null;
  #hasProgress = false;

  constructor({ json, live }: { json: boolean; live: boolean }) {
    this.#json = json;
    this.#live = live && !json;
  }

  delta(iteration: number, event_seq: number, text: string): void {
    if (!this.#live) return;
    this.#clearProgress();
    // A retried step starts over: its earlier text no longer counts.
    if (event_seq === 0 && this.#streaming) process.stdout.write("\n");
    if (event_seq === 0) {
      process.stdout.write(`${heading(iteration)} `);
      this.#streaming = { iteration, text: "" };
    }
    if (!this.#streaming) return;
    this.#streaming.text += text;
    process.stdout.write(printable(text));
  }

  step(step: Step): void {
    if (this.#json) return console.log(JSON.stringify(step));
    this.#clearProgress();
    const streamed = this.#streaming?.iteration === step.iteration ? this.#streaming.text : null;
    this.#streaming = null;
    if (streamed !== null && streamed === step.text) return void process.stdout.write("\n");
    if (streamed !== null) process.stdout.write("\n");
    for (const guidance of step.guidance)
      console.log(
        `${heading(step.iteration)} ${coloured("magenta", `guided: ${printable(JSON.stringify(guidance))}`)}`,
      );
    const text =
      step.status === "error"
        ? coloured("red", printable(step.error ?? ""))
        : printable(step.text ?? (step.data === null ? step.step_token : JSON.stringify(step.data)));
    console.log(`${heading(step.iteration)} ${text}`);
    for (const line of toolLines(step)) console.log(`${heading(step.iteration)} ${coloured("gray", printable(line))}`);
    const question = step.directives?.ask?.text;
    if (question !== undefined && question !== step.text)
      console.log(`${heading(step.iteration)} ${coloured("yellow", `asks: ${printable(question)}`)}`);
  }

  progress({ iteration, status, created_at }: Session): void {
    if (!this.#live || this.#streaming) return;
    this.#clearProgress();
    process.stdout.write(coloured("gray", `${status} · ${iteration + 1} steps · ${age(created_at)}`));
    this.#hasProgress = true;
  }

  note(text: string): void {
    if (this.#json) return;
    this.#clearProgress();
    console.error(text);
  }

  end(): void {
    this.#clearProgress();
    if (this.#streaming) process.stdout.write("\n");
    this.#streaming = null;
  }

  #clearProgress(): void {
    if (this.#hasProgress) process.stdout.write("\r\u001b[2K");
    this.#hasProgress = false;
  }
}

const LONGEST_OUTPUT = 200;

/** Its tools' results, one per line. */
const toolLines = ({ calls }: Step): string[] =>
  calls
    .filter(({ kind }) => kind === "tool")
    .map(({ name, output, error }) => {
      const answer = error ?? (typeof output === "string" ? output : JSON.stringify(output));
      const line = answer.replaceAll(/\s+/g, " ");
      return `${name}: ${line.length > LONGEST_OUTPUT ? `${line.slice(0, LONGEST_OUTPUT)}…` : line}`;
    });

const heading = (iteration: number): string => coloured("gray", `#${iteration}`);
