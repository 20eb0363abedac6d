import type { Action } from "../domain/action.ts";
import type { JsonValue } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { CallSpan, StepCall } from "../domain/step.ts";
import { readTraceparent } from "../domain/traceparent.ts";
import { asText, guidanceMessages, inputMessages, instructions, outputMessages } from "./content.ts";
import { ATTRIBUTE, modelAttributes, OPERATION, SPAN } from "./names.ts";
import type { Attributes, Span, Tracer } from "./tracer.ts";
import { turnIds } from "./turn-ids.ts";

type NewTurn = {
  first_iteration: number;
  /** The `traceparent` of the request or step that started the session; null except for the first turn. */
  parent: string | null;
  /** When its first step began; default: now. */
  at?: number;
  /** This process exports it; a turn exported by an earlier process is only continued. */
  is_owed: boolean;
  guidance: readonly JsonValue[];
};

/** A turn of an agent, `invoke_agent`: its first step and those that follow without new guidance. */
export class TurnSpan {
  readonly first_iteration: number;
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0 };
  #is_owed: boolean;
  #hasSteps: boolean;
  #lastAt: number;
  #error: string | undefined;

  constructor(tracer: Tracer, session: Session, { first_iteration, parent, at, is_owed, guidance }: NewTurn) {
    this.first_iteration = first_iteration;
    this.#tracer = tracer;
    this.#is_owed = is_owed;
    this.#hasSteps = at !== undefined;
    this.#lastAt = at ?? Date.now();
    const { trace_id, span_id } = turnIds(session.session_id, first_iteration);
    this.#span = tracer.start({
      name: SPAN.turn(session.agent_id),
      kind: "internal",
      parent,
      trace_id,
      span_id,
      at: this.#lastAt,
      attributes: {
        [ATTRIBUTE.operation]: OPERATION.turn,
        ...sessionAttributes(session),
        [ATTRIBUTE.agent_name]: session.agent_id,
        [ATTRIBUTE.moniker]: session.moniker,
        [ATTRIBUTE.first_iteration]: first_iteration,
        ...(tracer.captures_content &&
          guidance.length > 0 && { [ATTRIBUTE.input_messages]: guidanceMessages(guidance) }),
      },
    });
  }

  get traceparent(): string {
    return this.#span.traceparent;
  }

  /** A step begins or ends: the turn lasts at least until now. */
  touch(): void {
    this.#hasSteps = true;
    this.#lastAt = Date.now();
  }

  called(call: StepCall): void {
    if (call.kind !== "model") return;
    const { provider, model } = modelAttributes(call.name);
    this.#usage.input_tokens += call.input_tokens ?? 0;
    this.#usage.output_tokens += call.output_tokens ?? 0;
    this.#usage.cost_usd += call.cost_usd ?? 0;
    this.#span.set({ [ATTRIBUTE.provider]: provider, [ATTRIBUTE.request_model]: model });
  }

  /** The text of its last step; null after a failed one. */
  output(text: string | null): void {
    this.#error = undefined;
    if (text !== null && this.#tracer.captures_content)
      this.#span.set({ [ATTRIBUTE.output_messages]: outputMessages(text, undefined) });
  }

  failed(error_type: string): void {
    this.#error = error_type;
  }

  /** Only once: a turn that continues after it was ended, for example after a pause, is not exported again. */
  end({ status, stop_reason }: Pick<Session, "status" | "stop_reason">): void {
    if (!this.#is_owed || !this.#hasSteps) return;
    this.#is_owed = false;
    const { input_tokens, output_tokens, cost_usd } = this.#usage;
    const isUsed = input_tokens + output_tokens > 0;
    this.#span.set({
      [ATTRIBUTE.session_status]: status,
      [ATTRIBUTE.stop_reason]: stop_reason ?? undefined,
      ...(isUsed && { [ATTRIBUTE.input_tokens]: input_tokens, [ATTRIBUTE.output_tokens]: output_tokens }),
      ...(cost_usd > 0 && { [ATTRIBUTE.cost_usd]: cost_usd }),
    });
    this.#span.end({ at: this.#lastAt, error_type: status === "error" ? (this.#error ?? "error") : undefined });
  }
}

type NewStep = { session: Session; attempt: number; version: string | null; remote: string | undefined };

/** One attempt at a step, with its calls and its commit. */
export class StepSpan {
  readonly #tracer: Tracer;
  readonly #turn: TurnSpan;
  readonly #span: Span;
  readonly #session: Attributes;
  #isOver = false;

  constructor(tracer: Tracer, turn: TurnSpan, { session, attempt, version, remote }: NewStep) {
    this.#tracer = tracer;
    this.#turn = turn;
    turn.touch();
    this.#session = sessionAttributes(session);
    this.#span = tracer.start({
      name: SPAN.step(session.moniker),
      kind: remote === undefined ? "internal" : "client",
      parent: turn.traceparent,
      attributes: {
        ...this.#session,
        [ATTRIBUTE.moniker]: session.moniker,
        [ATTRIBUTE.moniker_version]: version ?? undefined,
        [ATTRIBUTE.iteration]: session.iteration + 1,
        [ATTRIBUTE.step_token]: session.next_step_token,
        [ATTRIBUTE.attempt]: attempt,
        [ATTRIBUTE.remote]: remote,
      },
    });
  }

  get traceparent(): string {
    return this.#span.traceparent;
  }

  /** A finished call to a model or tool. */
  called(call: StepCall, details: CallSpan = {}): void {
    this.#turn.called(call);
    const ended = Date.now();
    const span = this.#tracer.start({
      ...(call.kind === "model" ? this.#model(call, details) : this.#tool(call)),
      parent: this.traceparent,
      at: ended - call.latency_ms,
      ...spanIdOf(details.traceparent),
    });
    const isFailed = call.error !== undefined;
    const error_type = isFailed ? (details.error_type ?? "error") : undefined;
    span.end({ at: ended, error_type, error_message: call.error });
  }

  #model(call: StepCall, { finish_reason, settings = {} }: CallSpan) {
    const { provider, model } = modelAttributes(call.name);
    return {
      name: SPAN.model(model),
      kind: "client" as const,
      attributes: {
        ...this.#session,
        [ATTRIBUTE.operation]: OPERATION.model,
        [ATTRIBUTE.provider]: provider,
        [ATTRIBUTE.request_model]: model,
        [ATTRIBUTE.temperature]: settings.temperature,
        [ATTRIBUTE.max_tokens]: settings.max_output_tokens,
        [ATTRIBUTE.finish_reasons]: finish_reason === undefined ? undefined : [finish_reason],
        [ATTRIBUTE.input_tokens]: call.input_tokens,
        [ATTRIBUTE.output_tokens]: call.output_tokens,
        [ATTRIBUTE.cached_tokens]: call.cached_tokens,
        [ATTRIBUTE.estimated]: call.estimated || undefined,
        [ATTRIBUTE.cost_usd]: call.cost_usd,
        ...(this.#tracer.captures_content && {
          [ATTRIBUTE.instructions]: instructions(call.input),
          [ATTRIBUTE.input_messages]: inputMessages(call.input),
          [ATTRIBUTE.output_messages]: outputMessages(call.output, finish_reason),
        }),
      },
    };
  }

  #tool(call: StepCall) {
    return {
      name: SPAN.tool(call.name),
      kind: "internal" as const,
      attributes: {
        ...this.#session,
        [ATTRIBUTE.operation]: OPERATION.tool,
        [ATTRIBUTE.tool_name]: call.name,
        [ATTRIBUTE.tool_type]: "function",
        ...(this.#tracer.captures_content && {
          [ATTRIBUTE.tool_arguments]: asText(call.input),
          [ATTRIBUTE.tool_result]: asText(call.output),
        }),
      },
    };
  }

  /** Commits the step's rows. */
  async commit<Outcome extends { kind: string }>(write: () => Promise<Outcome>): Promise<Outcome> {
    const span = this.#tracer.start({
      name: SPAN.commit,
      kind: "internal",
      parent: this.traceparent,
      attributes: this.#session,
    });
    let kind = "failed";
    try {
      const outcome = await write();
      kind = outcome.kind;
      return outcome;
    } finally {
      span.set({ [ATTRIBUTE.outcome]: kind });
      span.end(kind === "committed" ? {} : { error_type: kind });
    }
  }

  /** The step was committed and used the guidance of these actions. */
  committed(text: string | null, consumed: readonly Action[]): void {
    for (const { action_id, action_type, metadata } of consumed) {
      const place = readTraceparent(metadata["traceparent"]);
      if (place) this.#span.link(place, { [ATTRIBUTE.action_id]: action_id, [ATTRIBUTE.action_type]: action_type });
    }
    this.#turn.output(text);
    this.#end("ok", {});
  }

  failed(error_type: string, error_message: string): void {
    this.#turn.failed(error_type);
    this.#end("error", { error_type, error_message });
  }

  /** Ended from outside; not a failure of the step. */
  cut(reason: string): void {
    this.#end(reason, {});
  }

  #end(outcome: string, end: Parameters<Span["end"]>[0]): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#span.set({ [ATTRIBUTE.step_outcome]: outcome });
    this.#span.end(end);
    this.#turn.touch();
  }
}

const sessionAttributes = ({ agent_id, session_id }: Session): Attributes => ({
  [ATTRIBUTE.agent_id]: agent_id,
  [ATTRIBUTE.conversation]: session_id,
  [ATTRIBUTE.session]: session_id,
});

/** The id of a span that was propagated before it was created. */
function spanIdOf(traceparent: string | undefined): { span_id?: string } {
  const place = readTraceparent(traceparent);
  return place ? { span_id: place.span_id } : {};
}
