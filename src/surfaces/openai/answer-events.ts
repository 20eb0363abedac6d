import type { Action } from "../../domain/action.ts";
import type { Session } from "../../domain/session.ts";
import type { Step } from "../../domain/step.ts";
import type { RuntimeEvent } from "../../events/events.ts";
import type { Topic } from "../../store/store.ts";
import type { AnswerIds } from "./answer-id.ts";
import type { OpenAiParts } from "./ask-session.ts";

const BETWEEN_STEPS = "\n\n";
const PAGE = 100;

export type Usage = { input_tokens: number; output_tokens: number; cached_tokens: number };

/** The parts of an answer. `index` counts its steps; `offset` is the length of the step's text emitted before. */
export type AnswerEvent =
  | { kind: "text"; index: number; offset: number; text: string }
  | { kind: "tool"; index: number; name: string }
  | { kind: "step"; index: number; text: string }
  | { kind: "end"; outcome: "completed" | "failed" | "cancelled"; error: string | null };

/**
 * The answer to one message, from a session's events and rows: it begins with the step that used the message and includes the
 * steps that follow on their own. It can be read again at any time, from any server.
 *
 * OPENAI-1  A step's texts, joined, are the text of its row. If a step started over with other words, the row's text follows
 *           what the first attempt had emitted.
 * OPENAI-2  It ends with the row of its last step, never with the session's row alone, which may arrive before its step.
 */
export class AnswerReader {
  readonly #parts: OpenAiParts;
  readonly #ids: AnswerIds;
  #first: number | null = null;
  #last: number | null = null;
  /** What was emitted of the current step. */
  #emitted = "";
  /** The text of the current attempt so far. */
  #attempt = { text: "", next: 0 };
  #hasText = false;
  #tools = new Set<string>();
  readonly usage: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0 };

  constructor(parts: OpenAiParts, ids: AnswerIds) {
    this.#parts = parts;
    this.#ids = ids;
  }

  /** `following` must follow the session since before the message was sent; without it the rows are read. */
  async *read(signal: AbortSignal, following?: AsyncIterable<RuntimeEvent>): AsyncGenerator<AnswerEvent> {
    for await (const event of following ?? (await this.#follow(signal))) {
      const answers = await this.#take(event);
      for (const one of answers) {
        yield one;
        if (one.kind === "end") return;
      }
    }
  }

  /** What exists of the answer now. */
  async *soFar(): AsyncGenerator<AnswerEvent> {
    const { store } = this.#parts;
    const action = await store.getAction(this.#ids.action_id);
    if (action) yield* await this.#takeAction(action);
    if (action?.consumed_iteration != null) {
      this.#first = action.consumed_iteration;
      for await (const step of this.#stepsAfter(action.consumed_iteration - 1)) yield* this.#takeStep(step);
    }
    const session = await store.getSession(this.#ids.session_id);
    if (session) yield* await this.#takeSession(session);
  }

  async #follow(signal: AbortSignal): Promise<AsyncIterable<RuntimeEvent>> {
    const { store, events } = this.#parts;
    const { session_id, action_id } = this.#ids;
    const first = (await store.getAction(action_id))?.consumed_iteration ?? null;
    const session = await store.getSession(session_id);
    const after_iteration = first === null ? (session?.iteration ?? -1) : first - 1;
    const topic: Topic = { session_id, after_iteration };
    const live = events.follow(topic, signal);
    return this.#withRows(live);
  }

  /** What ended before it listened is in the rows. */
  async *#withRows(live: AsyncIterable<RuntimeEvent>): AsyncGenerator<RuntimeEvent> {
    const { store } = this.#parts;
    const action = await store.getAction(this.#ids.action_id);
    if (action?.consumed_iteration != null) this.#first = action.consumed_iteration;
    if (action) yield { kind: "action", action };
    const session = await store.getSession(this.#ids.session_id);
    if (session) yield { kind: "session", session };
    yield* live;
  }

  async #take(event: RuntimeEvent): Promise<AnswerEvent[]> {
    switch (event.kind) {
      case "delta":
        return this.#takeDelta(event.delta);
      case "step":
        return this.#takeStep(event.step);
      case "action":
        return this.#takeAction(event.action);
      case "session":
        return this.#takeSession(event.session);
      case "message":
        return [];
    }
    return event satisfies never;
  }

  #takeDelta({
    action_ids,
    iteration,
    event_seq,
    text,
    tool,
    truncated,
  }: Extract<RuntimeEvent, { kind: "delta" }>["delta"]): AnswerEvent[] {
    if (truncated || !this.#isPart(action_ids, iteration)) return [];
    this.#first ??= iteration;
    const index = iteration - this.#first;
    // The step started over: repeated text is not emitted again.
    if (event_seq === 0) this.#attempt = { text: "", next: 0 };
    // A reader that joined in the middle, or missed a piece, gets the rest with the step's row.
    if (event_seq !== this.#attempt.next) return [];
    this.#attempt.next += 1;
    if (tool !== undefined) return this.#tool(index, tool);
    this.#attempt.text += text;
    const attempt = this.#attempt.text;
    return attempt.startsWith(this.#emitted) ? this.#emit(index, attempt.slice(this.#emitted.length)) : [];
  }

  #tool(index: number, name: string): AnswerEvent[] {
    if (this.#tools.has(name)) return [];
    this.#tools.add(name);
    return [{ kind: "tool", index, name }];
  }

  #takeStep(step: Step): AnswerEvent[] {
    if (step.status === "error" || !this.#isPart(step.action_ids, step.iteration)) return [];
    this.#first ??= step.iteration;
    const index = step.iteration - this.#first;
    const text = textOf(step);
    const tool =
      step.calls.find(({ kind }) => kind === "tool")?.name ?? /^act\/[^/]+\/(.+)$/.exec(step.step_token)?.[1];
    const events = tool === undefined ? [] : this.#tool(index, tool);
    const again = `${this.#emitted}${BETWEEN_STEPS}(It was started over.)${BETWEEN_STEPS}${text}`;
    const whole = text.startsWith(this.#emitted) ? text : again;
    events.push(...this.#emit(index, whole.slice(this.#emitted.length)));
    this.#count(step);
    events.push({ kind: "step", index, text: this.#shown(whole) });
    this.#hasText ||= whole !== "";
    this.#last = step.iteration;
    this.#emitted = "";
    this.#attempt = { text: "", next: 0 };
    this.#tools.clear();
    if (!step.directives?.go_on) events.push({ kind: "end", outcome: "completed", error: null });
    return events;
  }

  /** Separates the texts of several steps. */
  #shown(text: string): string {
    return this.#hasText && text !== "" ? BETWEEN_STEPS + text : text;
  }

  #emit(index: number, text: string): AnswerEvent[] {
    if (text === "") return [];
    const isFirst = this.#emitted === "";
    const gap = this.#hasText ? BETWEEN_STEPS : "";
    const offset = isFirst ? 0 : gap.length + this.#emitted.length;
    this.#emitted += text;
    return [{ kind: "text", index, offset, text: isFirst ? gap + text : text }];
  }

  #isPart(action_ids: readonly string[], iteration: number): boolean {
    if (this.#last !== null) return iteration > this.#last;
    return this.#first === null ? action_ids.includes(this.#ids.action_id) : iteration >= this.#first;
  }

  async #takeAction({ action_id, receipt, outcome, error }: Action): Promise<AnswerEvent[]> {
    if (action_id !== this.#ids.action_id) return [];
    if (receipt !== "bounced" && outcome !== "failed") return [];
    const session = await this.#parts.store.getSession(this.#ids.session_id);
    const isCancelled = session?.stop_reason === "destroyed";
    return [{ kind: "end", outcome: isCancelled ? "cancelled" : "failed", error: error ?? "the session ended first" }];
  }

  /** OPENAI-2 */
  async #takeSession({ status, stop_reason, last_error, session_id }: Session): Promise<AnswerEvent[]> {
    if (status === "error") {
      // If the session had failed before, it is resumed together with the message.
      if (this.#first === null && !(await this.#isDelivered())) return [];
      return [{ kind: "end", outcome: "failed", error: last_error ?? "the step failed" }];
    }
    // A stopping session lets its step finish; a client that cancelled does not wait for that.
    if (status !== "stopped" && status !== "stopping" && status !== "done") return [];
    const events: AnswerEvent[] = [];
    for await (const step of this.#stepsAfter(this.#last ?? (this.#first ?? 0) - 1)) {
      events.push(...this.#takeStep(step));
      if (events.at(-1)?.kind === "end") return events;
    }
    const isCancelled = stop_reason === "destroyed";
    const error = `session ${session_id} ended first${stop_reason ? ` (${stop_reason})` : ""}`;
    return [...events, { kind: "end", outcome: isCancelled ? "cancelled" : "failed", error }];
  }

  async #isDelivered(): Promise<boolean> {
    const action = await this.#parts.store.getAction(this.#ids.action_id);
    return action?.processed ?? false;
  }

  async *#stepsAfter(after_iteration: number): AsyncGenerator<Step> {
    for (let after = after_iteration; ; ) {
      const { session_id } = this.#ids;
      const page = await this.#parts.store.listSteps({
        session_id,
        status: "ok",
        after_iteration: after,
        limit: PAGE,
        offset: 0,
      });
      yield* page;
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      after = last.iteration;
    }
  }

  #count({ calls, tokens_used }: Step): void {
    const models = calls.filter(({ kind }) => kind === "model");
    const sum = (field: "input_tokens" | "output_tokens" | "cached_tokens") =>
      models.reduce((total, call) => total + (call[field] ?? 0), 0);
    const input = sum("input_tokens");
    this.usage.input_tokens += input;
    this.usage.cached_tokens += sum("cached_tokens");
    this.usage.output_tokens += Math.max(sum("output_tokens"), tokens_used - input);
  }
}

/** The text of a step that asks ends with the possible answers. */
function textOf({ text, directives }: Step): string {
  const own = text ?? "";
  const ask = directives?.ask;
  if (!ask) return own;
  const question = own.includes(ask.text) ? "" : `${own === "" ? "" : BETWEEN_STEPS}${ask.text}`;
  const choices = ask.choices
    ?.map(({ value }) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(", ");
  return own + question + (choices ? `${BETWEEN_STEPS}(Answer with: ${choices})` : "");
}
