import { type FormEvent, useState } from "react";
import type { JsonSchema } from "../../data/queries.ts";
import { type NewWebhook, putWebhook, type Webhook, type WebhookEvent } from "../../data/webhooks.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { readObject } from "../../ui/read-object.ts";
import { type Problems, SchemaFields } from "../../ui/schema-fields.tsx";
import { problemsIn } from "../start/problems-in.ts";

const EVENTS: [WebhookEvent, string][] = [
  ["session.asks", "asks a question"],
  ["session.ended", "ends"],
  ["session.failed", "fails"],
];

const SCHEMA: JsonSchema = {
  properties: {
    webhook_id: { title: "Name", type: "string", description: "An existing webhook of this name is changed." },
    url: { title: "Address", type: "string", format: "uri", description: "Events are posted here." },
    events: {
      title: "When a session",
      type: "array",
      items: { oneOf: EVENTS.map(([event, title]) => ({ const: event, title })) },
      minItems: 1,
      default: EVENTS.map(([event]) => event),
    },
    agent_id: { title: "Agent", type: "string", description: "Limits it to the sessions of this agent." },
  },
  required: ["webhook_id", "url", "events"],
};

type AddProps = { onAdded: (webhook: Webhook & { secret?: string }) => void; onClose: () => void };

export function AddWebhook({ onAdded, onClose }: AddProps) {
  const [problems, setProblems] = useState<Problems>(new Map());
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const read = readObject(new FormData(event.currentTarget), SCHEMA);
    setProblems(read.problems);
    if (read.problems.size > 0) return;
    const { webhook_id, ...webhook } = read.value as NewWebhook & { webhook_id: string };
    try {
      onAdded(await putWebhook(webhook_id, webhook));
    } catch (error) {
      setProblems(problemsIn(error));
    }
  };
  return (
    <Dialog title="Add a webhook" onClose={onClose}>
      <form noValidate onSubmit={(event) => void submit(event)} className="flex flex-col gap-3">
        <SchemaFields schema={SCHEMA} problems={problems} />
        {problems.size === 1 && problems.has("") && (
          <p role="alert" className="text-bad">
            {problems.get("")}
          </p>
        )}
        <DialogButtons label="Add" onClose={onClose} />
      </form>
    </Dialog>
  );
}
