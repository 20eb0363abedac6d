import { z } from "zod";
import { deliverySchema, webhookSchema } from "../../../domain/webhook.ts";
import type { ApiClient } from "../client.ts";
import { age, oneLine, printable, table } from "../output.ts";

type Options = { json?: boolean };
export type AddWebhookOptions = Options & { event: string[]; agent?: string };
export type DeliveriesOptions = Options & { limit: string };

const putSchema = webhookSchema.extend({ secret: z.string().optional() });
const listSchema = z.object({ webhooks: z.array(webhookSchema) });
const deliveriesSchema = z.object({ deliveries: z.array(deliverySchema) });
const EVERY_EVENT = ["session.asks", "session.ended", "session.failed"];
const LONGEST_ERROR = 80;

const pathOf = (...parts: string[]): string => ["/api/webhooks", ...parts.map(encodeURIComponent)].join("/");

export async function listWebhooks(client: ApiClient, { json }: Options): Promise<void> {
  const answer = await client.get(listSchema, pathOf(), { limit: 500 });
  if (json) return console.log(JSON.stringify(answer.webhooks));
  const rows = answer.webhooks.map(({ webhook_id, url, events, agent_id }) => [
    printable(webhook_id),
    printable(url),
    events.join(","),
    printable(agent_id ?? "(all)"),
  ]);
  console.log(rows.length === 0 ? "no webhooks yet" : table(["WEBHOOK", "ADDRESS", "EVENTS", "AGENT"], rows));
}

export async function addWebhook(
  client: ApiClient,
  webhook_id: string,
  url: string,
  { event, agent, json }: AddWebhookOptions,
): Promise<void> {
  const events = event.length === 0 ? EVERY_EVENT : event;
  const body = { url, events, ...(agent !== undefined && { agent_id: agent }) };
  const webhook = await client.put(putSchema, pathOf(webhook_id), body);
  if (json) return console.log(JSON.stringify(webhook));
  console.log(
    webhook.secret === undefined
      ? `changed ${webhook_id}; it keeps its secret`
      : `added ${webhook_id}\nits secret, shown this once: ${webhook.secret}`,
  );
}

export async function rotateSecret(client: ApiClient, webhook_id: string, { json }: Options): Promise<void> {
  const webhook = await client.post(putSchema.required(), `${pathOf(webhook_id)}/rotate-secret`);
  if (json) return console.log(JSON.stringify(webhook));
  console.log(
    `the new secret of ${webhook_id}, shown this once: ${webhook.secret}\nthe previous secret also signs for one more day`,
  );
}

export async function removeWebhook(client: ApiClient, webhook_id: string, { json }: Options): Promise<void> {
  await client.delete(z.null(), pathOf(webhook_id));
  console.log(json ? JSON.stringify({ webhook_id }) : `removed ${webhook_id}`);
}

export async function deliveries(
  client: ApiClient,
  webhook_id: string,
  { limit, json }: DeliveriesOptions,
): Promise<void> {
  const answer = await client.get(deliveriesSchema, `${pathOf(webhook_id)}/deliveries`, { limit });
  if (json) return console.log(JSON.stringify(answer.deliveries));
  const rows = answer.deliveries.map((delivery) => [
    delivery.delivery_id,
    delivery.event,
    printable(delivery.session_id),
    delivery.status,
    String(delivery.attempts),
    oneLine(delivery.last_error ?? String(delivery.response_status ?? ""), LONGEST_ERROR),
    age(delivery.created_at),
  ]);
  const headings = ["DELIVERY", "EVENT", "SESSION", "STATUS", "ATTEMPTS", "ANSWER", "AGE"];
  console.log(rows.length === 0 ? "nothing sent yet" : table(headings, rows));
}

export async function sendAgain(
  client: ApiClient,
  webhook_id: string,
  delivery_id: string,
  { json }: Options,
): Promise<void> {
  const path = `${pathOf(webhook_id, "deliveries", delivery_id)}/send-again`;
  const delivery = await client.post(deliverySchema, path);
  console.log(json ? JSON.stringify(delivery) : `resending ${delivery_id}`);
}
