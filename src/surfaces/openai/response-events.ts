import type { AnswerEvent } from "./answer-events.ts";

/** An event of a streamed response; `sequence_number` is its position in the stream. */
export type ResponseEvent = { type: string; sequence_number: number; [field: string]: unknown };

export type OutputItem =
  | { id: string; type: "message"; role: "assistant"; status: "completed" | "in_progress"; content: object[] }
  | { id: string; type: "reasoning"; summary: object[] };

/** The range of sequence numbers per step of an answer. */
const STEP = 1_000_000_000;
const FIRST = 10;
/** Where a step's closing events begin in its range; the numbers before them count emitted characters. */
const CLOSING = 900_000_000;

/**
 * Turns an answer into a response's output items and the events that stream them.
 *
 * SEQUENCE-1  An event's number depends on the step and the number of characters emitted, not on the number of events. An
 *             interrupted stream can therefore continue after any number, even from another process and in other pieces.
 */
export class ResponseItems {
  readonly output: OutputItem[] = [];
  readonly #prefix: string;
  #openText: string | null = null;
  readonly #tools = new Set<string>();

  /** `prefix` makes the items' ids unique. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** A note before the answer. */
  notice(text: string): ResponseEvent[] {
    return this.#reasoning(`rs_${this.#prefix}_notice`, text, 2);
  }

  take(event: AnswerEvent): ResponseEvent[] {
    switch (event.kind) {
      case "text":
        return this.#text(event);
      case "tool":
        return this.#tool(event.index, event.name);
      case "step":
        return this.#endStep(event);
      case "end":
        return this.#openText === null ? [] : this.#closeMessage(this.#openText, Number.NaN);
    }
    return event satisfies never;
  }

  #tool(index: number, name: string): ResponseEvent[] {
    const key = `${index}`;
    // One item for a step's tools, before its text: its row reports them again.
    if (this.#tools.has(key) || this.#openText !== null) return [];
    this.#tools.add(key);
    return this.#reasoning(`rs_${this.#prefix}_${index}`, `Using ${name}`, base(index) - 8);
  }

  #reasoning(id: string, text: string, at: number): ResponseEvent[] {
    const output_index = this.output.length;
    const part = { type: "summary_text", text };
    const item: OutputItem = { id, type: "reasoning", summary: [part] };
    this.output.push(item);
    const place = { item_id: id, output_index, summary_index: 0 };
    return [
      { type: "response.output_item.added", sequence_number: at, output_index, item: { ...item, summary: [] } },
      {
        type: "response.reasoning_summary_part.added",
        sequence_number: at + 1,
        ...place,
        part: { type: "summary_text", text: "" },
      },
      { type: "response.reasoning_summary_text.delta", sequence_number: at + 2, ...place, delta: text },
      { type: "response.reasoning_summary_text.done", sequence_number: at + 3, ...place, text },
      { type: "response.reasoning_summary_part.done", sequence_number: at + 4, ...place, part },
      { type: "response.output_item.done", sequence_number: at + 5, output_index, item },
    ];
  }

  #text({ index, offset, text }: Extract<AnswerEvent, { kind: "text" }>): ResponseEvent[] {
    const events = this.#openText === null ? this.#openMessage(index) : [];
    this.#openText = (this.#openText ?? "") + text;
    const sequence_number = base(index) + 1 + offset + text.length;
    events.push({ type: "response.output_text.delta", sequence_number, ...this.#place(), delta: text, logprobs: [] });
    return events;
  }

  #openMessage(index: number): ResponseEvent[] {
    const id = `msg_${this.#prefix}_${index}`;
    const item: OutputItem = { id, type: "message", role: "assistant", status: "in_progress", content: [] };
    this.output.push(item);
    const at = base(index);
    return [
      {
        type: "response.output_item.added",
        sequence_number: at,
        output_index: this.output.length - 1,
        item: { ...item, content: [] },
      },
      { type: "response.content_part.added", sequence_number: at + 1, ...this.#place(), part: textPart("") },
    ];
  }

  #place(): object {
    return { item_id: this.output.at(-1)?.id, output_index: this.output.length - 1, content_index: 0 };
  }

  #endStep({ index, text }: Extract<AnswerEvent, { kind: "step" }>): ResponseEvent[] {
    this.#tools.delete(`${index}`);
    return this.#openText === null ? [] : this.#closeMessage(text, base(index) + CLOSING);
  }

  #closeMessage(text: string, at: number): ResponseEvent[] {
    const place = this.#place();
    const item = this.output.at(-1);
    this.#openText = null;
    if (item?.type !== "message") return [];
    item.status = "completed";
    item.content = [textPart(text)];
    // A message that was never finished has no number of its own; the response's last event contains it.
    if (Number.isNaN(at)) return [];
    return [
      { type: "response.output_text.done", sequence_number: at, ...place, text, logprobs: [] },
      { type: "response.content_part.done", sequence_number: at + 1, ...place, part: textPart(text) },
      { type: "response.output_item.done", sequence_number: at + 2, output_index: this.output.length - 1, item },
    ];
  }
}

const base = (index: number): number => FIRST + 10 + index * STEP;
const textPart = (text: string): object => ({ type: "output_text", text, annotations: [], logprobs: [] });

export const LAST_EVENT = Number.MAX_SAFE_INTEGER - 1;

/** The part of an event after a number; null if all of it was sent. */
export function after(event: ResponseEvent, number: number): ResponseEvent | null {
  if (event.sequence_number <= number) return null;
  if (event.type !== "response.output_text.delta") return event;
  const delta = event["delta"] as string;
  const unsent = event.sequence_number - number;
  return unsent >= delta.length ? event : { ...event, delta: delta.slice(-unsent) };
}
