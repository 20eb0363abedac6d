import type { JsonObject } from "../domain/json.ts";
import { readTraceparent, toTraceparent } from "../domain/traceparent.ts";
import { incomingTraceparent } from "./incoming.ts";
import { ATTRIBUTE, SPAN } from "./names.ts";
import type { Tracer } from "./tracer.ts";

type Request = { action_type: string; session_id?: string | undefined; metadata?: JsonObject | undefined };
/** `metadata` links the action's row to the span, so that a step that uses it days later can be linked to it. */
type TracedRequest = { metadata: JsonObject; end: (outcome: RequestOutcome | null) => void };
type RequestOutcome = { kind: string; action_id?: string; session_id?: string };

/**
 * The span of a request. It belongs to the trace that the request carries in its header or metadata, else to a new one. `end`
 * gets null if the request failed.
 */
export type TraceRequest = (request: Request) => TracedRequest;

/** Handles a request, within a span if tracing is on. */
export function inRequestSpan<Outcome extends RequestOutcome>(
  trace: TraceRequest | undefined,
  request: Request,
  work: (metadata: JsonObject | undefined) => Promise<Outcome>,
): Promise<Outcome> {
  return trace ? traced(trace(request), work) : work(request.metadata);
}

async function traced<Outcome extends RequestOutcome>(
  { metadata, end }: TracedRequest,
  work: (metadata: JsonObject) => Promise<Outcome>,
): Promise<Outcome> {
  let outcome: Outcome | null = null;
  try {
    outcome = await work(metadata);
    return outcome;
  } finally {
    end(outcome);
  }
}

export const requestTracer =
  (tracer: Tracer): TraceRequest =>
  ({ action_type, session_id, metadata }) => {
    const from = readTraceparent(incomingTraceparent()) ?? readTraceparent(metadata?.["traceparent"]);
    const span = tracer.start({
      name: SPAN.request(action_type),
      kind: "producer",
      parent: from && toTraceparent(from),
      attributes: { [ATTRIBUTE.action_type]: action_type, ...sessionAttributes(session_id) },
    });
    return {
      metadata: { ...metadata, traceparent: span.traceparent },
      end(outcome) {
        const kind = outcome?.kind ?? "failed";
        span.set({
          ...sessionAttributes(outcome?.session_id),
          [ATTRIBUTE.action_id]: outcome?.action_id,
          [ATTRIBUTE.outcome]: kind,
        });
        span.end(kind === "accepted" || kind === "posted" ? {} : { error_type: kind });
      },
    };
  };

const sessionAttributes = (session_id: string | undefined) => ({
  [ATTRIBUTE.conversation]: session_id,
  [ATTRIBUTE.session]: session_id,
});
