import { sessionHref } from "../../app/router.ts";
import { useAgentNames } from "../../data/queries.ts";
import { type Delivery, sendAgain, useDeliveries } from "../../data/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Failure } from "../../ui/empty.tsx";
import { Link } from "../../ui/link.tsx";
import { Section } from "../../ui/section.tsx";
import { SessionName } from "../../ui/session-name.tsx";
import { ShowMore } from "../../ui/show-more.tsx";
import { Cell, Row, Table } from "../../ui/table.tsx";
import { Age, Until } from "../../ui/time.tsx";
import { attempt } from "../../ui/toast.tsx";

const STATUS = {
  pending: { text: "pending", color: "text-warn" },
  delivered: { text: "delivered", color: "text-good" },
  given_up: { text: "given up", color: "text-bad" },
} as const;
const HEADS = ["Event", "Session", "State", "Attempts", "Last answer", "When", "Actions"];

/** Deliveries to a webhook, newest first. */
export function Deliveries({ webhook_id }: { webhook_id: string }) {
  const pages = useDeliveries(webhook_id);
  const { data, error } = pages;
  const deliveries = data?.pages.flatMap((page) => page.deliveries);
  const agents = useAgentNames(deliveries?.map(({ session_id }) => session_id) ?? []);
  return (
    <div className="mx-auto max-w-6xl p-4">
      <Section title={`Deliveries to ${webhook_id}`}>
        {error && <Failure error={error} />}
        {deliveries?.length === 0 && <p className="text-muted">No deliveries yet.</p>}
        {deliveries && deliveries.length > 0 && (
          <Table label="Deliveries" heads={HEADS}>
            {deliveries.map((delivery) => (
              <DeliveryRow key={delivery.delivery_id} delivery={delivery} agent_id={agents.get(delivery.session_id)} />
            ))}
          </Table>
        )}
        <ShowMore pages={pages} />
      </Section>
    </div>
  );
}

function DeliveryRow({ delivery, agent_id }: { delivery: Delivery; agent_id: string | undefined }) {
  const { delivery_id, event, session_id, status, attempts, response_status, last_error, next_attempt_at } = delivery;
  const { text, color } = STATUS[status];
  return (
    <Row data-testid="delivery" data-delivery={delivery_id}>
      <Cell>{event}</Cell>
      <Cell className="max-w-56 truncate">
        <Link href={sessionHref(session_id)} className="text-accent hover:underline">
          <SessionName agent_id={agent_id} session_id={session_id} />
        </Link>
      </Cell>
      <Cell className={`whitespace-nowrap ${color}`}>{text}</Cell>
      <Cell className="tabular-nums">
        {attempts}
        {attempts > 0 && next_attempt_at !== null && (
          <span className="text-muted">
            , next <Until at={next_attempt_at} />
          </span>
        )}
      </Cell>
      <Cell className="min-w-48">{last_error ?? response_status ?? "–"}</Cell>
      <Cell className="whitespace-nowrap text-muted">
        <Age at={delivery.created_at} />
      </Cell>
      <Cell>
        <Button onClick={() => void attempt(() => sendAgain(delivery))}>
          {status === "pending" ? "Send now" : "Send again"}
        </Button>
      </Cell>
    </Row>
  );
}
