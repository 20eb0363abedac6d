import { z } from "zod";
import { actionSchema } from "../../domain/action.ts";
import { agentConfigSchema, agentSchema } from "../../domain/agent.ts";
import { conversationSchema, messageSchema, participantSchema } from "../../domain/conversation.ts";
import { idSchema, timeSchema } from "../../domain/ids.ts";
import { requestedOptionsSchema, sessionOptionsSchema, sessionSchema } from "../../domain/session.ts";
import { sessionSummarySchema } from "../../domain/session-summary.ts";
import { stepSchema } from "../../domain/step.ts";
import { archiveJobSchema, volumeSchema } from "../../domain/volume.ts";
import { deliverySchema, webhookSchema } from "../../domain/webhook.ts";
import { problemSchema } from "./problem.ts";

for (const [id, schema] of Object.entries({
  Action: actionSchema,
  Agent: agentSchema,
  AgentConfig: agentConfigSchema,
  Conversation: conversationSchema,
  Message: messageSchema,
  Participant: participantSchema,
  Session: sessionSchema,
  SessionOptions: sessionOptionsSchema,
  RequestedOptions: requestedOptionsSchema,
  SessionSummary: sessionSummarySchema,
  Step: stepSchema,
  Webhook: webhookSchema,
  WebhookDelivery: deliverySchema,
  Volume: volumeSchema,
  ArchiveJob: archiveJobSchema,
}))
  z.globalRegistry.add(schema, { id });

/** The same in every response. */
export const workersSchema = z
  .array(
    z.object({
      name: z.string().optional().describe("If the server has a token, only for requests with it."),
      started_at: timeSchema,
      takes_sessions: z.boolean(),
      owned_sessions: z.int(),
      actions_under_way: z.int(),
      silent_ms: z.number(),
      blocked_ms: z.number().describe("How long a step has been blocking the process; 0 if none does."),
    }),
  )
  .optional()
  .describe("The processes that share the store, on PostgreSQL.");

export const NEEDS_PERSON = "Only sessions that ask something, failed, are held, or were stopped by a limit.";

const wholeNumber = z.coerce.number().int();

/** The part of a list to return. */
export const pageQuery = {
  limit: wholeNumber.min(1).max(500).default(100),
  offset: wholeNumber.min(0).max(Number.MAX_SAFE_INTEGER).default(0),
};
/** A word in the URL; the documentation shows a boolean. */
export const booleanQuery = z.stringbool().meta({ type: "boolean" });
export const iterationQuery = wholeNumber.min(-1).max(Number.MAX_SAFE_INTEGER).optional();

export const idParams = <Name extends string>(name: Name) =>
  z.object({ [name]: idSchema } as Record<Name, typeof idSchema>);

const PROBLEMS: Readonly<Record<number, string>> = {
  400: "The request is invalid.",
  401: "The server has a token, and the request has none or a wrong one.",
  403: "The server has no token, and the request does not come from this machine.",
  404: "An id in the request is unknown.",
  409: "The request conflicts with the current state.",
  429: "The session has too much unused guidance; `Retry-After` says when to retry.",
  504: "The answer took too long.",
};

type Described = z.ZodType | { description: string; content: Record<string, { schema: z.ZodType }> };

/** A route's responses for the documentation: the success and its possible problems. */
export const answers = (status: number, schema: z.ZodType, ...problems: number[]): Record<number, z.ZodType> =>
  openAnswers(status, schema, 401, ...problems);

/** For a route that needs no token. */
export function openAnswers(status: number, schema: z.ZodType, ...problems: number[]): Record<number, z.ZodType> {
  const entries = problems.map((code): [number, Described] => [
    code,
    {
      description: PROBLEMS[code] ?? "Problem",
      content: { "application/problem+json": { schema: problemSchema } },
    },
  ]);
  // The type provider accepts both kinds but only types the first; responses are not typed by it.
  return Object.fromEntries([[status, schema], ...entries]) as Record<number, z.ZodType>;
}

export const acceptedSchema = z.object({ action_id: idSchema, agent_id: idSchema, session_id: idSchema });
