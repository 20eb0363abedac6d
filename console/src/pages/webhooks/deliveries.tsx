import { sessionHref } from "../../app/router.ts";
import { type Delivery, sendAgain, useDeliveries } from "../../data/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Failure } from "../../ui/empty.tsx";
import { Link } from "../../ui/link.tsx";
import { Section } from "../../ui/section.tsx";
import { Age, Until } from "../../ui/time.tsx";
import { attempt } from "../../ui/toast.tsx";

const STATUS = {
  pending: { text: "on its way", color: "text-warn" },
  delivered: { text: "delivered", color: "text-good" },
  given_up: { text: "given up", color: "text-bad" },
} as const;
const HEADS = ["Event", "Session", "State", "Attempts", "Last answer", "When", ""];

/** What was sent to a webhook and what is on its way, newest first. */
export function Deliveries({ webhook_id }: { webhook_id: string }) {
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useDeliveries(webhook_id);
  const deliveries = data?.pages.flatMap((page) => page.deliveries);
  return (
    <div className="mx-auto max-w-6xl p-4">
      <Section title={`Deliveries to ${webhook_id}`}>
        {error && <Failure error={error} />}
        {deliveries?.length === 0 && <p className="text-muted">Nothing was sent yet.</p>}
        {deliveries && deliveries.length > 0 && (
          <div className="panel overflow-x-auto" tabIndex={0} role="region" aria-label="Deliveries">
            <table className="w-full text-left">
              <thead>
                <tr className="border-b border-line">
                  {HEADS.map((head) => (
                    <th key={head} className="caption px-3.5 py-2">
                      {head === "" ? <span className="sr-only">What can be done</span> : head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {deliveries.map((delivery) => (
                  <DeliveryRow key={delivery.delivery_id} delivery={delivery} />
                ))}
              </tbody>
            </table>
          </div>
        )}
        {hasNextPage && (
          <div className="flex justify-center p-3">
            <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Show more
            </Button>
          </div>
        )}
      </Section>
    </div>
  );
}

function DeliveryRow({ delivery }: { delivery: Delivery }) {
  const { delivery_id, event, session_id, status, attempts, response_status, last_error, next_attempt_at } = delivery;
  const { text, color } = STATUS[status];
  return (
    <tr data-testid="delivery" data-delivery={delivery_id} className="border-b border-line last:border-0">
      <td className="px-3.5 py-2">{event}</td>
      <td className="max-w-40 truncate px-3.5 py-2 font-mono text-[12px]">
        <Link href={sessionHref(session_id)} className="text-accent hover:underline">
          {session_id}
        </Link>
      </td>
      <td className={`px-3.5 py-2 whitespace-nowrap ${color}`}>{text}</td>
      <td className="px-3.5 py-2 tabular-nums">
        {attempts}
        {attempts > 0 && next_attempt_at !== null && (
          <span className="text-muted">
            , next <Until at={next_attempt_at} />
          </span>
        )}
      </td>
      <td className="px-3.5 py-2">{last_error ?? response_status ?? "–"}</td>
      <td className="px-3.5 py-2 whitespace-nowrap text-muted">
        <Age at={delivery.created_at} />
      </td>
      <td className="px-3.5 py-2 text-right">
        <Button onClick={() => void attempt(() => sendAgain(delivery))}>
          {status === "pending" ? "Send now" : "Send again"}
        </Button>
      </td>
    </tr>
  );
}
