import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { pathOf, post } from "../../data/api.ts";
import { client, summariesPage, useMonikers } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt } from "../../ui/toast.tsx";

type AddProps = { conversation_id: string; onClose: () => void };

async function join(conversation_id: string, work: () => Promise<unknown>, onClose: () => void): Promise<void> {
  const isIn = await attempt(async () => {
    await work();
    await client.invalidateQueries({ queryKey: ["participants", conversation_id] });
  });
  if (isIn) onClose();
}

/** A session that runs already, or a new one. */
export function AddAgentDialog({ conversation_id, onClose }: AddProps) {
  const sessions = useQuery(summariesPage({ status: ["running", "waiting", "paused"] }, 0)).data?.sessions ?? [];
  const monikers = useMonikers().data ?? [];
  const [chosen, setChosen] = useState("new:chat");
  const [name, setName] = useState("");
  const isNew = chosen.startsWith("new:");
  const moniker = chosen.slice("new:".length);
  const add = () =>
    join(
      conversation_id,
      () =>
        isNew
          ? post("/api/agents", { agent_id: name.trim() || moniker, moniker, conversation_id })
          : post(pathOf("conversations", conversation_id, "participants"), {
              session_id: chosen.slice("session:".length),
            }),
      onClose,
    );
  return (
    <AddForm title="Add an agent" onClose={onClose} onAdd={add}>
      <label>
        <span className="mb-1 block font-medium">Which</span>
        <select className="field" value={chosen} onChange={(event) => setChosen(event.target.value)}>
          <optgroup label="Start a new one">
            {monikers
              .filter(
                ({ params_schema }) =>
                  (params_schema.required ?? []).length === 0 ||
                  params_schema.required?.every((field) => params_schema.properties?.[field]?.default !== undefined),
              )
              .map((one) => (
                <option key={one.name} value={`new:${one.name}`}>
                  {one.name} – {one.description}
                </option>
              ))}
          </optgroup>
          {sessions.length > 0 && (
            <optgroup label="One that runs already">
              {sessions.map(({ session_id, agent_id, moniker: of }) => (
                <option key={session_id} value={`session:${session_id}`}>
                  {agent_id} ({of}, {session_id})
                </option>
              ))}
            </optgroup>
          )}
        </select>
      </label>
      {isNew && (
        <label>
          <span className="mb-1 block font-medium">Its name</span>
          <input
            className="field"
            value={name}
            placeholder={moniker}
            maxLength={200}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
      )}
    </AddForm>
  );
}

export function AddPersonDialog({ conversation_id, onClose }: AddProps) {
  const [user_id, setUserId] = useState("");
  const add = async () => {
    if (user_id.trim() === "") return;
    const path = pathOf("conversations", conversation_id, "participants");
    await join(conversation_id, () => post(path, { user_id: user_id.trim() }), onClose);
  };
  return (
    <AddForm title="Add a person" onClose={onClose} onAdd={add}>
      <label>
        <span className="mb-1 block font-medium">Name</span>
        <input className="field" value={user_id} maxLength={200} onChange={(event) => setUserId(event.target.value)} />
      </label>
    </AddForm>
  );
}

type AddFormProps = { title: string; onClose: () => void; onAdd: () => Promise<void>; children: ReactNode };
const AddForm = ({ title, onClose, onAdd, children }: AddFormProps) => (
  <Dialog title={title} onClose={onClose}>
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        void onAdd();
      }}
    >
      {children}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary">
          Add
        </Button>
      </div>
    </form>
  </Dialog>
);
