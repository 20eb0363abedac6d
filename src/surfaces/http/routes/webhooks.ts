import { z } from "zod";
import { idSchema } from "../../../domain/ids.ts";
import { deliverySchema, toDelivery, toWebhook, webhookEventSchema, webhookSchema } from "../../../domain/webhook.ts";
import type { Routes } from "../context.ts";
import { nextSchema } from "../list-order.ts";
import { invalid, orNotFound } from "../problem.ts";
import { answers, idParams, pageQuery } from "../schemas.ts";

const params = idParams("webhook_id");
const deliveryParams = params.extend({ delivery_id: idSchema });

const webhookBody = z.strictObject({
  url: z
    .string()
    .min(1)
    .max(2000)
    .describe("http:// or https://, at a public address unless EVERSTEP_WEBHOOK_ALLOW permits another."),
  events: z.array(webhookEventSchema).min(1).max(20),
  agent_id: idSchema.optional().describe("Only for this agent's sessions. Default: all."),
});

const secretField = z.string().describe("Signs every delivery. It is not shown again.");
const putAnswer = webhookSchema.extend({ secret: secretField.optional() });
const rotatedAnswer = webhookSchema.extend({ secret: secretField });

export const webhookRoutes: Routes = (app, context) => {
  writingRoutes(app, context);
  readingRoutes(app, context);
  deliveryRoutes(app, context);
};

const writingRoutes: Routes = (app, { webhooks }) => {
  app.put(
    "/api/webhooks/:webhook_id",
    {
      schema: {
        tags: ["webhooks"],
        operationId: "putWebhook",
        summary: "Add a webhook, which returns its secret once, or change its address and events",
        params,
        body: webhookBody,
        response: answers(200, putAnswer, 400),
      },
    },
    async ({ params: { webhook_id }, body }) => {
      const outcome = await webhooks.put(webhook_id, body);
      if (outcome.kind === "invalid") throw invalid([{ path: outcome.path, message: outcome.message }]);
      const webhook = toWebhook(outcome.webhook);
      return outcome.kind === "changed" ? webhook : { ...webhook, secret: outcome.webhook.secret };
    },
  );

  app.post(
    "/api/webhooks/:webhook_id/rotate-secret",
    {
      schema: {
        tags: ["webhooks"],
        operationId: "rotateWebhookSecret",
        summary: "Create a new secret, returned once; the previous one also signs for one more day",
        params,
        response: answers(200, rotatedAnswer, 404),
      },
    },
    async (request) => {
      const webhook = orNotFound(await webhooks.rotateSecret(request.params.webhook_id), "webhook");
      return { ...toWebhook(webhook), secret: webhook.secret };
    },
  );

  app.delete(
    "/api/webhooks/:webhook_id",
    {
      schema: {
        tags: ["webhooks"],
        operationId: "deleteWebhook",
        summary: "Remove a webhook with all its deliveries",
        params,
        response: answers(204, z.null().describe("Removed."), 404),
      },
    },
    async (request, reply) => {
      orNotFound((await webhooks.store.remove(request.params.webhook_id)) || null, "webhook");
      return reply.code(204).send(null);
    },
  );
};

const readingRoutes: Routes = (app, { webhooks }) => {
  app.get(
    "/api/webhooks",
    {
      schema: {
        tags: ["webhooks"],
        operationId: "listWebhooks",
        summary: "List webhooks by id",
        querystring: z.object(pageQuery),
        response: answers(200, z.object({ webhooks: z.array(webhookSchema) }), 400),
      },
    },
    async ({ query }) => ({ webhooks: (await webhooks.store.list(query)).map(toWebhook) }),
  );

  app.get(
    "/api/webhooks/:webhook_id",
    {
      schema: {
        tags: ["webhooks"],
        operationId: "getWebhook",
        summary: "One webhook",
        params,
        response: answers(200, webhookSchema, 404),
      },
    },
    async (request) => toWebhook(orNotFound(await webhooks.store.get(request.params.webhook_id), "webhook")),
  );
};

const deliveryRoutes: Routes = (app, { webhooks }) => {
  app.get(
    "/api/webhooks/:webhook_id/deliveries",
    {
      schema: {
        tags: ["webhooks"],
        operationId: "listWebhookDeliveries",
        summary: "A webhook's deliveries, newest first",
        params,
        querystring: z.object({
          limit: pageQuery.limit,
          after: idSchema.optional().describe("`next` of the previous page."),
        }),
        response: answers(200, z.object({ deliveries: z.array(deliverySchema), next: nextSchema }), 400, 404),
      },
    },
    async ({ params: { webhook_id }, query: { limit, after } }) => {
      orNotFound(await webhooks.store.get(webhook_id), "webhook");
      const filter = { webhook_id, limit, ...(after !== undefined && { after }) };
      const deliveries = (await webhooks.store.listDeliveries(filter)).map(toDelivery);
      return { deliveries, next: deliveries.length < limit ? null : (deliveries.at(-1)?.delivery_id ?? null) };
    },
  );

  app.post(
    "/api/webhooks/:webhook_id/deliveries/:delivery_id/send-again",
    {
      schema: {
        tags: ["webhooks"],
        operationId: "sendWebhookDeliveryAgain",
        summary: "Resend a delivery with the same id, or send a waiting one now",
        params: deliveryParams,
        response: answers(202, deliverySchema, 404),
      },
    },
    async ({ params: { webhook_id, delivery_id } }, reply) => {
      const delivery = orNotFound(await webhooks.sendAgain(webhook_id, delivery_id), "delivery");
      return reply.code(202).send(toDelivery(delivery));
    },
  );
};
