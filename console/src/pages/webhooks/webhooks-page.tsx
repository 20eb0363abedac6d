import { useState } from "react";
import { useQueryState } from "../../app/router.ts";
import { removeWebhook, rotateSecret, useWebhooks, type Webhook } from "../../data/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { CopyId } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Page } from "../../ui/page.tsx";
import { attempt } from "../../ui/toast.tsx";
import { AddWebhook } from "./add-webhook.tsx";
import { Deliveries } from "./deliveries.tsx";

type Dialog =
  | { kind: "add" }
  | { kind: "secret"; webhook_id: string; secret: string }
  | { kind: "remove"; webhook_id: string };

/** Webhooks and their deliveries. */
export default function WebhooksPage() {
  const { data: webhooks, error } = useWebhooks();
  const [query, change] = useQueryState();
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const shown = webhooks?.find(({ webhook_id }) => webhook_id === query.get("webhook")) ?? webhooks?.[0];
  const rotate = (webhook_id: string) =>
    void attempt(async () =>
      setDialog({ kind: "secret", webhook_id, secret: (await rotateSecret(webhook_id)).secret }),
    );
  return (
    <Page
      title="Webhooks"
      note={webhooks && plural(webhooks.length, "webhook")}
      aside={
        <Button look="primary" onClick={() => setDialog({ kind: "add" })}>
          Add a webhook
        </Button>
      }
    >
      {error && <Failure error={error} />}
      {webhooks?.length === 0 && (
        <Empty title="No webhooks yet">
          A webhook tells your program when a session asks a question, ends or fails.
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
            onRemove={() => setDialog({ kind: "remove", webhook_id: webhook.webhook_id })}
          />
        ))}
      </ul>
      {shown && <Deliveries key={shown.webhook_id} webhook_id={shown.webhook_id} />}
      {dialog?.kind === "add" && (
        <AddWebhook
          onClose={() => setDialog(null)}
          onAdded={({ webhook_id, secret }) => {
            change({ webhook: webhook_id });
            setDialog(secret === undefined ? null : { kind: "secret", webhook_id, secret });
          }}
        />
      )}
      {dialog?.kind === "secret" && <Secret {...dialog} onClose={() => setDialog(null)} />}
      {dialog?.kind === "remove" && <Removal webhook_id={dialog.webhook_id} onClose={() => setDialog(null)} />}
    </Page>
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
        className="min-w-0 flex-1 basis-full text-left hover:underline sm:basis-0"
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
      title={`Secret of ${webhook_id}`}
      description="Deliveries are signed with it. Copy it now: it is not shown again."
      onClose={onClose}
    >
      <p data-testid="secret" className="break-all">
        <CopyId id={secret} label="the secret" />
      </p>
      <div className="mt-4 flex justify-end">
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}

function Removal({ webhook_id, onClose }: { webhook_id: string; onClose: () => void }) {
  return (
    <Dialog
      title={`Remove ${webhook_id}?`}
      description="Its deliveries are removed too, including pending ones."
      onClose={onClose}
    >
      <DialogButtons
        label="Remove"
        isDangerous
        onConfirm={() => void attempt(() => removeWebhook(webhook_id)).then(onClose)}
        closeLabel="Keep it"
        onClose={onClose}
      />
    </Dialog>
  );
}
