import { z } from "zod";
import { idSchema, newId, timeSchema } from "./ids.ts";
import { type JsonValue, jsonSchema } from "./json.ts";
import { type Question, questionSchema } from "./question.ts";
import { isLive, type Session } from "./session.ts";

export const webhookEventSchema = z.enum(["session.asks", "session.ended", "session.failed"]);
export type WebhookEvent = z.infer<typeof webhookEventSchema>;

/** A webhook as clients see it. */
export const webhookSchema = z.object({
  webhook_id: idSchema,
  url: z.string(),
  events: z.array(webhookEventSchema),
  /** Only this agent's sessions; null: all sessions. */
  agent_id: idSchema.nullable(),
  created_at: timeSchema,
  updated_at: timeSchema,
});
export type Webhook = z.infer<typeof webhookSchema>;

/** A row of the table `webhooks`. A secret is shown once, when it is created. */
export type StoredWebhook = Webhook & {
  secret: string;
  /** Also signs until that time, so that receivers can switch secrets without a gap. */
  former_secret: string | null;
  former_secret_until: string | null;
};

/** An event being delivered to one webhook, as clients see it. */
export const deliverySchema = z.object({
  /** Sent as the header `webhook-id` with every attempt. */
  delivery_id: idSchema,
  webhook_id: idSchema,
  event: webhookEventSchema,
  session_id: idSchema,
  agent_id: idSchema,
  status: z.enum(["pending", "delivered", "given_up"]),
  /** Attempts whose end was written. */
  attempts: z.int().min(0),
  /** The status of the receiver's last response; null if it did not respond. */
  response_status: z.int().nullable(),
  /** Why the last attempt failed. */
  last_error: z.string().nullable(),
  created_at: timeSchema,
  last_attempt_at: timeSchema.nullable(),
  /** Null if there is no further attempt. */
  next_attempt_at: timeSchema.nullable(),
  /** When it was delivered or abandoned. */
  ended_at: timeSchema.nullable(),
});
export type Delivery = z.infer<typeof deliverySchema>;

/** A row of the table `webhook_deliveries`, with the session as it was at the event; the payload is built from it. */
export type StoredDelivery = Delivery & {
  /** A failure after this time abandons the delivery. */
  retry_until: string;
  moniker: string;
  session_status: Session["status"];
  stop_reason: Session["stop_reason"];
  question: Question | null;
  result: JsonValue;
  /** The result was too large for the payload. */
  is_result_left_out: boolean;
  session_error: string | null;
};

/** How long a delivery is retried, counted from the event. */
export const RETRY_FOR_MS = 24 * 3_600_000;
/** The largest result or question in a payload, in characters of JSON. */
const LARGEST_PART = 16_384;
const LONGEST_TEXT = 4000;

export const toWebhook = ({ webhook_id, url, events, agent_id, created_at, updated_at }: StoredWebhook): Webhook => ({
  webhook_id,
  url,
  events,
  agent_id,
  created_at,
  updated_at,
});

export const toDelivery = (stored: StoredDelivery): Delivery => {
  const fields = Object.keys(deliverySchema.shape) as (keyof Delivery)[];
  return Object.fromEntries(fields.map((name) => [name, stored[name]])) as Delivery;
};

/**
 * The event, if any, of a commit that creates a session or takes it from one row to the next. On PostgreSQL triggers decide
 * this; both must agree.
 */
export function eventOf(last: Session | null, session: Session): WebhookEvent | null {
  // A fork of a step that asks a question.
  if (last === null) return isLive(session.status) && session.question !== null ? "session.asks" : null;
  if (!isLive(session.status)) {
    if (last.status === session.status) return null;
    return session.status === "error" ? "session.failed" : "session.ended";
  }
  if (session.question === null) return null;
  const isNew = last.question?.question_id !== session.question.question_id;
  // A session that a limit stopped still asks its question when it continues.
  return isNew || !isLive(last.status) ? "session.asks" : null;
}

/** Whether a webhook subscribes to an event of the session. */
export const hears = ({ events, agent_id }: Webhook, event: WebhookEvent, session: Session): boolean =>
  events.includes(event) && (agent_id === null || agent_id === session.agent_id);

export function newDelivery(webhook_id: string, event: WebhookEvent, session: Session): StoredDelivery {
  const { session_id, agent_id, moniker, status, stop_reason, question, result, last_error, updated_at } = session;
  const is_result_left_out = isLarge(result);
  return {
    delivery_id: newId(),
    webhook_id,
    event,
    session_id,
    agent_id,
    status: "pending",
    attempts: 0,
    response_status: null,
    last_error: null,
    created_at: updated_at,
    last_attempt_at: null,
    next_attempt_at: updated_at,
    ended_at: null,
    retry_until: new Date(Date.parse(updated_at) + RETRY_FOR_MS).toISOString(),
    moniker,
    session_status: status,
    stop_reason,
    question: event === "session.asks" ? question : null,
    result: event !== "session.ended" || is_result_left_out ? null : result,
    is_result_left_out: event === "session.ended" && is_result_left_out,
    session_error: event === "session.failed" ? last_error : null,
  };
}

const askPayloadSchema = questionSchema
  .pick({ question_id: true, text: true, choices: true, schema: true, about: true, asked_at: true })
  .describe("If the question is large, `about`, `schema` and `choices` are null and `text` is truncated.");

/** The body of a delivery, identical on every attempt. */
export const webhookPayloadSchema = z.object({
  type: webhookEventSchema,
  timestamp: timeSchema.describe("The time of the event."),
  data: z.object({
    session_id: idSchema,
    agent_id: idSchema,
    moniker: z.string(),
    status: z.string(),
    stop_reason: z.string().nullable().optional().describe("Why the session ended; null if it finished its task."),
    ask: askPayloadSchema.optional(),
    error: z.string().nullable().optional(),
    result: jsonSchema.optional(),
    is_truncated: z.literal(true).optional().describe("Part of the payload was too large; the API has the full value."),
  }),
});
export type WebhookPayload = z.infer<typeof webhookPayloadSchema>;

export function payloadOf(delivery: StoredDelivery): WebhookPayload {
  const { event, session_id, agent_id, moniker, session_status, created_at } = delivery;
  const { is_truncated, ...details } = detailsOf(delivery);
  return {
    type: event,
    timestamp: created_at,
    data: {
      session_id,
      agent_id,
      moniker,
      status: session_status,
      ...details,
      ...(is_truncated && { is_truncated: true as const }),
    },
  };
}

type Details = Pick<WebhookPayload["data"], "stop_reason" | "ask" | "error" | "result"> & { is_truncated: boolean };

function detailsOf(delivery: StoredDelivery): Details {
  const { event, stop_reason, question, result, is_result_left_out, session_error } = delivery;
  switch (event) {
    case "session.asks":
      return question ? askDetails(question) : { is_truncated: false };
    case "session.ended":
      return { stop_reason, result, is_truncated: is_result_left_out };
    case "session.failed":
      return {
        error: session_error === null ? null : cut(session_error),
        is_truncated: (session_error?.length ?? 0) > LONGEST_TEXT,
      };
    default:
      return event satisfies never;
  }
}

function askDetails({ question_id, text, choices, schema, about, asked_at }: Question): Details {
  const ask = { question_id, text, choices, schema, about, asked_at };
  if (!isLarge(ask)) return { ask, is_truncated: false };
  return {
    ask: { question_id, text: cut(text), choices: null, schema: null, about: null, asked_at },
    is_truncated: true,
  };
}

const isLarge = (value: unknown): boolean => value !== null && (JSON.stringify(value)?.length ?? 0) > LARGEST_PART;
const cut = (text: string): string => text.slice(0, LONGEST_TEXT).toWellFormed();
