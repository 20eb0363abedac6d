import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Delivery, Webhook, WebhookEvent } from "../../../src/domain/webhook.ts";
import { get, pathOf, post, put, remove } from "./api.ts";
import { client } from "./queries.ts";

export type { Delivery, Webhook, WebhookEvent };
export type NewWebhook = { url: string; events: WebhookEvent[]; agent_id?: string };
type DeliveryPage = { deliveries: Delivery[]; next: string | null };

const REFETCH_MS = 2000;

export const useWebhooks = () =>
  useQuery({
    queryKey: ["webhooks"],
    queryFn: async ({ signal }) =>
      (await get<{ webhooks: Webhook[] }>("/api/webhooks", { limit: 500 }, signal)).webhooks,
  });

export const useDeliveries = (webhook_id: string) =>
  useInfiniteQuery({
    queryKey: ["deliveries", webhook_id],
    refetchInterval: REFETCH_MS,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: DeliveryPage) => last.next ?? undefined,
    queryFn: ({ signal, pageParam: after }) =>
      get<DeliveryPage>(pathOf("webhooks", webhook_id, "deliveries"), { limit: 50, after }, signal),
  });

const renewList = (): void => void client.invalidateQueries({ queryKey: ["webhooks"] });

/** A new webhook's secret is in the answer. */
export async function putWebhook(webhook_id: string, webhook: NewWebhook): Promise<Webhook & { secret?: string }> {
  const stored = await put<Webhook & { secret?: string }>(pathOf("webhooks", webhook_id), webhook);
  renewList();
  return stored;
}

export const rotateSecret = (webhook_id: string): Promise<Webhook & { secret: string }> =>
  post(pathOf("webhooks", webhook_id, "rotate-secret"));

export async function removeWebhook(webhook_id: string): Promise<void> {
  await remove(pathOf("webhooks", webhook_id));
  renewList();
}

export async function sendAgain({ webhook_id, delivery_id }: Delivery): Promise<void> {
  await post(pathOf("webhooks", webhook_id, "deliveries", delivery_id, "send-again"));
  await client.invalidateQueries({ queryKey: ["deliveries", webhook_id] });
}
