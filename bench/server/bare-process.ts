import fastify from "fastify";
import { validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { newMessageSchema } from "../../src/actions/conversations.ts";
import { interrupt } from "../../src/actions/types/interrupt.ts";
import type { Message } from "../../src/domain/conversation.ts";
import { idSchema, newId, now, timeSchema } from "../../src/domain/ids.ts";
import { stepStatusSchema } from "../../src/domain/step.ts";
import { idParams, iterationQuery, pageQuery } from "../../src/surfaces/http/schemas.ts";
import { askedToStop, say } from "../runtime/child.ts";
import { newLoadSession, nextStep } from "../store/load.ts";

/** Sent when it listens. */
export type BareMessage = { port: number };

/** What the same requests cost if nothing is stored: the same validation of requests, the same shape of responses. */
const stopped = askedToStop();
const app = fastify().withTypeProvider<ZodTypeProvider>();
app.setValidatorCompiler(validatorCompiler);
app.setSerializerCompiler(() => (data) => JSON.stringify(data));

app.post(
  "/api/sessions/:session_id/interrupt",
  { schema: { params: idParams("session_id"), body: interrupt.payload } },
  async ({ params: { session_id } }, reply) =>
    reply.code(202).send({ action_id: newId(), agent_id: "bench", session_id }),
);

const load = newLoadSession();
const steps = Array.from({ length: 100 }, () => nextStep(load, []));
const stepQuery = z.object({
  session_id: idSchema.optional(),
  agent_id: idSchema.optional(),
  min_iteration: iterationQuery,
  max_iteration: iterationQuery,
  after_iteration: iterationQuery,
  since_created_at: timeSchema.optional(),
  status: stepStatusSchema.optional(),
  ...pageQuery,
});
app.get("/api/agent-steps", { schema: { querystring: stepQuery } }, async () => ({ steps }));

app.post(
  "/api/conversations/:conversation_id/messages",
  { schema: { params: idParams("conversation_id"), body: newMessageSchema } },
  async ({ params: { conversation_id }, body }, reply) => {
    const message: Message = {
      message_id: body.message_id ?? newId(),
      conversation_id,
      created_at: now(),
      sender_type: "user",
      user_id: body.user_id,
      agent_id: null,
      session_id: null,
      text: body.text,
      data: body.data ?? null,
      status: null,
      event_type: "message",
      iteration: null,
      step_token: null,
      next_step_token: null,
      notes: null,
      action_ids: [],
    };
    return reply.code(201).send({ message, action_ids: message.action_ids });
  },
);

const address = await app.listen({ host: "127.0.0.1", port: 0 });
say({ port: Number(new URL(address).port) } satisfies BareMessage);
await stopped;
await app.close();
