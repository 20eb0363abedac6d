import { type FormEvent, useState } from "react";
import { ApiError } from "../../data/api.ts";
import { putWebhook, type Webhook, type WebhookEvent } from "../../data/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

const EVENTS: [WebhookEvent, string][] = [
  ["session.asks", "asks something"],
  ["session.ended", "ended"],
  ["session.failed", "failed"],
];

const FIELDS = [
  { name: "webhook_id", label: "Name", schema: { type: "string", minLength: 1, maxLength: 200 }, isRequired: true },
  { name: "url", label: "Address", schema: { type: "string", format: "uri" }, isRequired: true },
  {
    name: "events",
    label: "When a session",
    schema: {
      type: "array",
      items: { oneOf: EVENTS.map(([event, title]) => ({ const: event, title })) },
      default: EVENTS.map(([event]) => event),
    },
    isRequired: true,
  },
  {
    name: "agent_id",
    label: "Agent",
    schema: { type: "string", description: "Only of this agent's sessions." },
    isRequired: false,
  },
];

type AddProps = { onAdded: (webhook: Webhook & { secret?: string }) => void; onClose: () => void };

export function AddWebhook({ onAdded, onClose }: AddProps) {
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<string | null>(null);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string): string => {
      const value = form.get(name);
      return typeof value === "string" ? value.trim() : "";
    };
    const missing = ["webhook_id", "url"].filter((name) => text(name) === "");
    if (missing.length > 0) return setProblems(Object.fromEntries(missing.map((name) => [name, "This is required."])));
    const agent_id = text("agent_id");
    try {
      const events = form.getAll("events") as WebhookEvent[];
      onAdded(await putWebhook(text("webhook_id"), { url: text("url"), events, ...(agent_id !== "" && { agent_id }) }));
    } catch (error) {
      const errors = error instanceof ApiError ? error.errors : [];
      setProblems(Object.fromEntries(errors.map(({ path, message }) => [path, message])));
      setFailure(errors.length === 0 && error instanceof Error ? error.message : null);
    }
  };
  return (
    <Dialog
      title="Add a webhook"
      description="A name that is there already is changed, and keeps its secret."
      onClose={onClose}
    >
      <form noValidate onSubmit={(event) => void submit(event)} className="flex flex-col gap-3">
        {FIELDS.map((field) => (
          <Field key={field.name} {...field} problem={problems[field.name]} />
        ))}
        {failure !== null && (
          <p role="alert" className="text-bad">
            {failure}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit">
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
