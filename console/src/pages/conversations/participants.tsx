import { useState } from "react";
import { sessionHref } from "../../app/router.ts";
import { pathOf, remove } from "../../data/api.ts";
import { client, type Participant, type SessionSummary } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { plural } from "../../ui/format.ts";
import { Link } from "../../ui/link.tsx";
import { Status } from "../../ui/status.tsx";
import { attempt } from "../../ui/toast.tsx";
import { AddAgentDialog, AddPersonDialog } from "./add-dialogs.tsx";

type ParticipantsProps = {
  conversation_id: string;
  participants: Participant[];
  sessions: SessionSummary[];
  isShown: boolean;
  onHide: () => void;
};

/** The conversation's participants, with the status of its sessions. */
export function Participants({ conversation_id, participants, sessions, isShown, onHide }: ParticipantsProps) {
  const [adding, setAdding] = useState<"agent" | "person" | null>(null);
  const byId = new Map(sessions.map((row) => [row.session_id, row]));
  const leave = (participant_id: string) =>
    attempt(async () => {
      await remove(pathOf("conversations", conversation_id, "participants", participant_id));
      await client.invalidateQueries({ queryKey: ["participants", conversation_id] });
    });
  return (
    <aside
      aria-label="Participants"
      className={`min-h-0 flex-col border-line bg-surface lg:flex lg:w-64 lg:shrink-0 lg:flex-none lg:border-l ${isShown ? "flex flex-1" : "hidden"}`}
    >
      <header className="flex h-[49px] shrink-0 items-center gap-2 border-b border-line px-4">
        <h2 className="caption mr-auto py-1.5">Participants</h2>
        <button type="button" className="text-accent lg:hidden" onClick={onHide}>
          Back to messages
        </button>
      </header>
      <ul className="min-h-0 flex-1 overflow-y-auto">
        {participants.map((one) => (
          <li key={one.participant_id} className="border-b border-line px-4 py-2" data-testid="participant">
            <div className="flex items-center gap-2">
              <span className="min-w-0 flex-1 truncate font-medium">
                {one.session_id === null ? (
                  one.user_id
                ) : (
                  <Link href={sessionHref(one.session_id)} className="hover:underline">
                    {one.agent_id}
                  </Link>
                )}
              </span>
              <button
                type="button"
                aria-label={`Remove ${one.user_id ?? one.agent_id}`}
                className="rounded px-1 text-muted hover:bg-sunken hover:text-ink"
                onClick={() => void leave(one.participant_id)}
              >
                ✕
              </button>
            </div>
            <SessionState row={byId.get(one.session_id ?? "")} role={one.role} />
          </li>
        ))}
      </ul>
      <div className="flex gap-2 border-t border-line p-3">
        <Button className="flex-1" onClick={() => setAdding("agent")}>
          Add an agent
        </Button>
        <Button className="flex-1" onClick={() => setAdding("person")}>
          Add a person
        </Button>
      </div>
      {adding === "agent" && <AddAgentDialog conversation_id={conversation_id} onClose={() => setAdding(null)} />}
      {adding === "person" && <AddPersonDialog conversation_id={conversation_id} onClose={() => setAdding(null)} />}
    </aside>
  );
}

function SessionState({ row, role }: { row: SessionSummary | undefined; role: string | null }) {
  if (!row) return <p className="text-[12px] text-muted">{role ?? "person"}</p>;
  return (
    <p className="flex items-center gap-3 text-[12px] text-muted">
      <Status status={row.status} />
      <span>{plural(row.iteration + 1, "step")}</span>
      {role !== null && <span>{role}</span>}
    </p>
  );
}
