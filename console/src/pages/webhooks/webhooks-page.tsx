import { useState } from "react";
import { useQueryState } from "../../app/router.ts";
import { removeWebhook, rotateSecret, useWebhooks, type Webhook } from "../../data/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { CopyId } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { attempt } from "../../ui/toast.tsx";
import { AddWebhook } from "./add-webhook.tsx";
import { Deliveries } from "./deliveries.tsx";

type Asked =
  | { kind: "add" }
  | { kind: "secret"; webhook_id: string; secret: string }
  | { kind: "remove"; webhook_id: string };

/** Where events are sent to, and what became of each. */
export default function WebhooksPage() {
  const { data: webhooks, error } = useWebhooks();
  const [query, change] = useQueryState();
  const [asked, ask] = useState<Asked | null>(null);
  const shown = webhooks?.find(({ webhook_id }) => webhook_id === query.get("webhook")) ?? webhooks?.[0];
  const rotate = (webhook_id: string) =>
    void attempt(async () => ask({ kind: "secret", webhook_id, secret: (await rotateSecret(webhook_id)).secret }));
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <header className="flex h-[49px] shrink-0 items-center justify-between border-b border-line bg-surface px-4">
        <h1 className="text-[16px] font-semibold">Webhooks</h1>
        <Button look="primary" onClick={() => ask({ kind: "add" })}>
          Add a webhook
        </Button>
      </header>
      {error && <Failure error={error} />}
      {webhooks?.length === 0 && (
        <Empty title="Nobody is told of anything yet">
          A webhook tells a program of yours when a session asks something, ended or failed.
        </Empty>
      )}
      <ul>
        {webhooks?.map((webhook) => (
          <WebhookRow
            key={webhook.webhook_id}
            webhook={webhook}
            isShown={webhook === shown}
            onShow={() => change({ webhook: webhook.webhook_id })}
            onRotate={() => rotate(webhook.webhook_id)}
            onRemove={() => ask({ kind: "remove", webhook_id: webhook.webhook_id })}
          />
        ))}
      </ul>
      {shown && <Deliveries key={shown.webhook_id} webhook_id={shown.webhook_id} />}
      {asked?.kind === "add" && (
        <AddWebhook
          onClose={() => ask(null)}
          onAdded={({ webhook_id, secret }) => {
            change({ webhook: webhook_id });
            ask(secret === undefined ? null : { kind: "secret", webhook_id, secret });
          }}
        />
      )}
      {asked?.kind === "secret" && <Secret {...asked} onClose={() => ask(null)} />}
      {asked?.kind === "remove" && <Removal webhook_id={asked.webhook_id} onClose={() => ask(null)} />}
    </div>
  );
}

type RowProps = { webhook: Webhook; isShown: boolean; onShow: () => void; onRotate: () => void; onRemove: () => void };

function WebhookRow({ webhook: { webhook_id, url, events, agent_id }, isShown, onShow, onRotate, onRemove }: RowProps) {
  return (
    <li
      data-testid="webhook"
      data-webhook={webhook_id}
      className={`flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-4 py-2 ${isShown ? "bg-accent-soft" : "bg-surface"}`}
    >
      <button
        type="button"
        aria-pressed={isShown}
        onClick={onShow}
        className="min-w-0 flex-1 text-left hover:underline"
      >
        <span className="block truncate font-medium">{webhook_id}</span>
        <span className="block truncate font-mono text-[12px] text-muted">{url}</span>
      </button>
      <span className="text-[12px] text-muted">
        {events.join(", ")}
        {agent_id !== null && ` of ${agent_id}`}
      </span>
      <Button onClick={onRotate} aria-label={`New secret for ${webhook_id}`}>
        New secret
      </Button>
      <Button onClick={onRemove} aria-label={`Remove ${webhook_id}`}>
        Remove…
      </Button>
    </li>
  );
}

function Secret({ webhook_id, secret, onClose }: { webhook_id: string; secret: string; onClose: () => void }) {
  return (
    <Dialog
      title={`The secret of ${webhook_id}`}
      description="Deliveries are signed with it. It is shown this once: keep it where your program finds it."
      onClose={onClose}
    >
      <p data-testid="secret" className="break-all">
        <CopyId id={secret} label="the secret" />
      </p>
      <div className="mt-4 flex justify-end">
        <Button look="primary" onClick={onClose}>
          I have it
        </Button>
      </div>
    </Dialog>
  );
}

function Removal({ webhook_id, onClose }: { webhook_id: string; onClose: () => void }) {
  return (
    <Dialog
      title={`Remove ${webhook_id}?`}
      description="Its deliveries go with it, those that are still on their way too."
      onClose={onClose}
    >
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Keep it</Button>
        <Button look="danger" onClick={() => void attempt(() => removeWebhook(webhook_id)).then(onClose)}>
          Remove
        </Button>
      </div>
    </Dialog>
  );
}
