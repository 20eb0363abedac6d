import { z } from "zod";
import { actionSchema } from "../../domain/action.ts";
import { agentConfigSchema, agentSchema } from "../../domain/agent.ts";
import { conversationSchema, messageSchema, participantSchema } from "../../domain/conversation.ts";
import { idSchema, timeSchema } from "../../domain/ids.ts";
import { requestedOptionsSchema, sessionOptionsSchema, sessionSchema } from "../../domain/session.ts";
import { sessionSummarySchema } from "../../domain/session-summary.ts";
import { stepSchema } from "../../domain/step.ts";
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
}))
  z.globalRegistry.add(schema, { id });

/** The same in every answer. */
export const workersSchema = z
  .array(
    z.object({
      name: z.string().optional().describe("Only where the token is given, if one is set."),
      started_at: timeSchema,
      takes_sessions: z.boolean(),
      owned_sessions: z.int(),
      actions_under_way: z.int(),
      silent_ms: z.number(),
      blocked_ms: z
        .number()
        .describe("For how long a step has kept everything else in the process from running; 0 where none does."),
    }),
  )
  .optional()
  .describe("The processes that share the store, on PostgreSQL.");

export const NEEDS_PERSON = "Those that ask something, failed, are held, or were stopped by a limit.";

const wholeNumber = z.coerce.number().int();

/** How much of a list is wanted. */
export const pageQuery = {
  limit: wholeNumber.min(1).max(500).default(100),
  offset: wholeNumber.min(0).max(Number.MAX_SAFE_INTEGER).default(0),
};
/** In an address it is a word; to those who read the document it is a boolean. */
export const booleanQuery = z.stringbool().meta({ type: "boolean" });
export const iterationQuery = wholeNumber.min(-1).max(Number.MAX_SAFE_INTEGER).optional();

export const idParams = <Name extends string>(name: Name) =>
  z.object({ [name]: idSchema } as Record<Name, typeof idSchema>);

const PROBLEMS: Readonly<Record<number, string>> = {
  400: "The request is not as it should be.",
  401: "A token is set, and the request has none or a wrong one.",
  403: "No token is set, and the request does not come from this machine.",
  404: "An id in the request is unknown.",
  409: "The request contradicts what is there.",
  429: "The session was told so much that no step has used yet that this does not fit; `Retry-After` says when to try again.",
};

type Described = z.ZodType | { description: string; content: Record<string, { schema: z.ZodType }> };

/** The answers of a route for its documentation: the good one, and the problems it may meet. */
export const answers = (status: number, schema: z.ZodType, ...problems: number[]): Record<number, z.ZodType> =>
  openAnswers(status, schema, 401, ...problems);

/** Those of a route that needs no token. */
export function openAnswers(status: number, schema: z.ZodType, ...problems: number[]): Record<number, z.ZodType> {
  const entries = problems.map((code): [number, Described] => [
    code,
    {
      description: PROBLEMS[code] ?? "Problem",
      content: { "application/problem+json": { schema: problemSchema } },
    },
  ]);
  // The type provider takes both kinds and knows the type of the first only; answers are not typed by it.
  return Object.fromEntries([[status, schema], ...entries]) as Record<number, z.ZodType>;
}

export const acceptedSchema = z.object({ action_id: idSchema, agent_id: idSchema, session_id: idSchema });
