import { z } from "zod";
import { idSchema, newId, timeSchema } from "./ids.ts";
import { type JsonValue, jsonSchema } from "./json.ts";
import { type Question, questionSchema } from "./question.ts";
import { isLive, type Session } from "./session.ts";

export const webhookEventSchema = z.enum(["session.asks", "session.ended", "session.failed"]);
export type WebhookEvent = z.infer<typeof webhookEventSchema>;

/** Where events are sent to, as everybody may see it. */
export const webhookSchema = z.object({
  webhook_id: idSchema,
  url: z.string(),
  events: z.array(webhookEventSchema),
  /** Only of this agent's sessions; null: of all. */
  agent_id: idSchema.nullable(),
  created_at: timeSchema,
  updated_at: timeSchema,
});
export type Webhook = z.infer<typeof webhookSchema>;

/** A row of the table `webhooks`. Secrets are shown once, when they are made. */
export type StoredWebhook = Webhook & {
  secret: string;
  /** Signs as well until that time, so that a receiver can change over. */
  former_secret: string | null;
  former_secret_until: string | null;
};

/** An event on its way to one webhook, as everybody may see it. */
export const deliverySchema = z.object({
  /** The header `webhook-id` of every attempt. */
  delivery_id: idSchema,
  webhook_id: idSchema,
  event: webhookEventSchema,
  session_id: idSchema,
  agent_id: idSchema,
  status: z.enum(["pending", "delivered", "given_up"]),
  /** How often it was tried, as far as the end of the attempt was written. */
  attempts: z.int().min(0),
  /** What the receiver answered last; null where it did not answer. */
  response_status: z.int().nullable(),
  /** Why the last attempt failed. */
  last_error: z.string().nullable(),
  created_at: timeSchema,
  last_attempt_at: timeSchema.nullable(),
  /** Null where it is not tried again. */
  next_attempt_at: timeSchema.nullable(),
  /** When it was delivered or given up. */
  ended_at: timeSchema.nullable(),
});
export type Delivery = z.infer<typeof deliverySchema>;

/** A row of the table `webhook_deliveries`: with what the session was when it happened, which the payload is made from. */
export type StoredDelivery = Delivery & {
  /** It is given up when it fails after this time. */
  retry_until: string;
  moniker: string;
  session_status: Session["status"];
  stop_reason: Session["stop_reason"];
  question: Question | null;
  result: JsonValue;
  /** The result was too large to be sent along. */
  is_result_left_out: boolean;
  session_error: string | null;
};

/** How long a delivery is tried, from the event on. */
export const RETRY_FOR_MS = 24 * 3_600_000;
/** Characters of JSON that a payload has of a result or a question at the most. */
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

/** What a commit that leads a session from one row to the next is an event of. PostgreSQL tells it by a trigger: both must agree. */
export function eventOf(last: Session, session: Session): WebhookEvent | null {
  if (!isLive(session.status)) {
    if (last.status === session.status) return null;
    return session.status === "error" ? "session.failed" : "session.ended";
  }
  if (session.question === null) return null;
  const isNew = last.question?.question_id !== session.question.question_id;
  // One that a limit stopped still asks when it goes on.
  return isNew || !isLive(last.status) ? "session.asks" : null;
}

/** Whether a webhook is told of an event of an agent's session. */
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
  .describe("`about`, `schema` and `choices` are null, and `text` is cut, where the question is large.");

/** The body of a delivery, the same on every attempt. */
export const webhookPayloadSchema = z.object({
  type: webhookEventSchema,
  timestamp: timeSchema.describe("When it happened."),
  data: z.object({
    session_id: idSchema,
    agent_id: idSchema,
    moniker: z.string(),
    status: z.string(),
    stop_reason: z
      .string()
      .nullable()
      .optional()
      .describe("Of a session that ended: why, unless it was done by itself."),
    ask: askPayloadSchema.optional(),
    error: z.string().nullable().optional(),
    result: jsonSchema.optional(),
    is_truncated: z.literal(true).optional().describe("Something was too large to be sent along; the API has it."),
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
